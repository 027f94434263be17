// A timeline: the steps of all ranks of a schedule on a logical clock. Every step takes one unit; a
// fold is one step. A rank does its steps in order, and one that receives begins when the message
// has left its sender, so a rank that waits shows a gap. Lanes run side by side. What each step has
// in hand is followed as well: a part of the data, and whose contributions it holds so far.
//
// This is a picture of dependences, not of time on any machine: messages cost nothing, links hold
// any number of them. Any schedule of all ranks will do, also a wrong one, as long as it ends.
//
// Pure; any thread. Fails where the schedule does: deadlock or messages that nobody takes throw
// Error(kInvalidArgument) that names the rank and step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/collective/schedule.h"
#include "src/picture/scene.h"

namespace catenary::picture {

class RankSet {
 public:
  void add(int rank);
  void add(const RankSet& others);
  bool contains(int rank) const;
  int size() const;
  // "0-3, 7"
  std::string text() const;

 private:
  std::vector<std::uint64_t> words_;
};

// What lies in a chunk. No contributions: nothing that anybody gave.
struct Content {
  int part = -1;
  RankSet from;
};

// A step, the steps of a fold, or of a run: see condense.h.
struct Action {
  int lane = 0;
  int rank = 0;
  std::size_t first_step = 0;  // in the rank's schedule
  std::size_t steps = 1;
  int start = 0;                         // and ends at start + 1
  Content result;                        // of a run: of its first step, from whom all of them are
  std::vector<Content> run;              // what each step of a run has in hand; empty for others
  std::vector<std::size_t> arrivals;     // indexes of messages, in the order of the steps
  std::optional<std::size_t> departure;  // index of a message
};

struct Message {
  int lane = 0;
  int from = 0;
  int to = 0;
  std::size_t sender = 0;  // indexes of actions
  std::size_t receiver = 0;
  std::size_t count = 1;  // so many in a row
};

struct Timeline {
  Scene scene;
  std::vector<std::vector<Schedule>> schedules;            // [lane][rank]
  int units = 0;                                           // until the last step ends
  std::vector<Action> actions;                             // by lane, rank, start
  std::vector<Message> messages;                           // by lane, sender, start
  std::vector<std::vector<std::vector<Content>>> outputs;  // at the end: [lane][rank][chunk]

  int chunk_count() const { return schedules[0][0].chunk_count; }
  const Step& last_step(const Action& action) const;
  std::size_t message_count() const;
  std::size_t most_steps() const;     // that a rank has in a lane
  std::size_t most_messages() const;  // that a rank sends in all lanes, to others
};

Timeline timeline_of(const Scene& scene);
Timeline timeline_of(const Scene& scene, std::vector<std::vector<Schedule>> schedules);

// What a rank has at the start.
Content given(const Scene& scene, int rank, int index);

// "receives 3 messages from ranks 1-3, reduces them with input 0, ..."
std::string describe(const Timeline& timeline, const Action& action);

}  // namespace catenary::picture
