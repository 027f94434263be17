// Proves that the schedules of all ranks together do what their collective means: pulls the steps
// of every rank side by side, as the engine would run them, and moves fingerprints instead of bytes
// over links of a given number of slots. What it runs is what is executed; nothing is written out,
// so thousands of ranks fit.
//
// Found out are: wrong, missing, doubled or unfinished contributions; sends and receives that do
// not pair up in length, pass and slice; messages left over; deadlock; input read after it was
// overwritten in place; output written twice or read too soon; undefined scratch; results whose
// bits would differ from rank to rank or from cut to cut; and whatever breaks a rule of schedule.h.
//
// A rank waits in one place at a time, for its next messages and slot, and nothing it does depends
// on who is faster. So all orders of execution end alike, and the checker runs only one.
//
// One thread at a time; nothing waits. A fault is an answer, not a failure; Error only where there
// is no memory, or a case has more than kMostPasses passes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/proof/links.h"
#include "src/proof/memory.h"
#include "src/proof/proof_case.h"
#include "src/proof/shape.h"

namespace catenary::proof {

// A message's frame has 16 bits for its pass.
inline constexpr std::size_t kMostPasses = UINT16_MAX;

struct Verdict {
  std::string fault;        // the first thing found wrong, or nothing
  int scratch_chunks = 0;   // that the rank with the most has
  std::uint64_t moves = 0;  // slices of steps
};

class Checker {
 public:
  // `orders` is that of all cases that must give the same bits: those that differ in count, slots
  // and slices only.
  Verdict check(const ProofCase& which, const StepSource& source, Orders& orders);

 private:
  // A step as the engine compiles it, or a fold of several.
  struct Task {
    Link* in = nullptr;   // null: takes no message, or is a fold
    Link* out = nullptr;  // null: sends none
    Chunk src = {};
    Chunk dst = {};
    int recv_from = kNobody;
    int send_to = kNobody;
    int part = 0;
    int label = 0;  // what both ends of its messages must agree on
    bool received_first = false;
    bool is_fold = false;
    bool is_empty = false;  // moves no data, but opens a link
  };
  // Where a rank is: at a slice of a task, in a pass.
  struct State {
    std::optional<Steps> steps;
    Task task;
    std::uint64_t frame = 0;   // of the slice's messages
    std::uint32_t slices = 0;  // that the task has yet to do
    std::uint32_t step = 0;    // how many were pulled in this pass
    std::uint16_t slice = 0;
    std::uint16_t pass = 0;
    bool is_done = false;
    Chunk own_message;           // what it sent to itself, straight from input
    std::vector<int> fold;       // of a task that is one: whom its messages are from
    std::size_t fold_ready = 0;  // so many of its messages are there

    // Keeps what memory it has.
    void begin() {
      steps.reset();
      slices = 0;
      pass = 0;
      is_done = false;
    }
  };

  // With all that it calls made one piece, since a survey does it billions of times.
  [[gnu::flatten]] void go();

  // Each false if something is wrong, which is in the verdict then.
  bool begin(const ProofCase& which, const StepSource& source);
  bool take_step(int rank, State& state, const Step& step);
  bool take_fold(int rank, State& state, const Step& first);
  bool end_pass(int rank, State& state);
  bool read(int rank, const State& state, const Chunk& chunk, Fingerprint& value);
  bool keep(int rank, const State& state, bool was_reduced, Fingerprint& value);
  bool receive(int rank, const State& state, int from, Link& link, Fingerprint& value);
  bool check_end();
  bool check_written(int rank);
  bool check_links_empty();
  [[gnu::noinline]] bool fail(int rank, const State& state, const std::string& what);

  // False if it waits or fails.
  bool advance(int rank, State& state);
  bool do_slice(int rank, State& state);
  bool do_fold_slice(int rank, State& state);

  void note_scratch(const Chunk& chunk) {
    if (chunk.buffer != Buffer::kScratch) return;
    verdict_.scratch_chunks = std::max(verdict_.scratch_chunks, chunk.index + 1);
  }
  void cut_parts();
  void begin_pass(int rank, State& state);
  bool label_task(int rank, State& state, const Chunk& extent);
  void size_task(State& state, bool opens_in, bool opens_out);
  bool may_send(int rank, const State& state, bool opens);
  bool has_room(const Task& task);
  void send(const State& state, const Fingerprint& value);
  const Range& part_of(const State& state, int chunk) const {
    return parts_[state.pass * static_cast<std::size_t>(chunk_count_) +
                  static_cast<std::size_t>(chunk)];
  }
  std::size_t element_of(const State& state, const Chunk& chunk) const;
  std::string waiting_for(const State& state) const;

  ProofCase which_;
  const StepSource* source_ = nullptr;
  Shape shape_;
  Links links_;
  Memory memory_;
  std::vector<State> states_;
  std::vector<Range> parts_;  // pass * chunk_count_ + chunk
  int chunk_count_ = 1;
  bool per_rank_ = false;
  std::size_t passes_ = 1;
  std::size_t slices_a_pass_ = 1;
  std::uint32_t capacity_ = 2;
  std::uint32_t most_steps_ = 0;
  std::size_t in_flight_ = 0;
  std::size_t outputs_ = 0;  // elements that a rank with output must write
  std::vector<int> ready_;   // ranks that may go on; the last one is next
  Verdict verdict_;
};

}  // namespace catenary::proof
