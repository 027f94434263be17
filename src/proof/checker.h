// Proves that the schedules of all ranks together do what their collective means: pulls the steps
// of every rank side by side, as the engine would run them, and moves fingerprints instead of bytes
// over links of a given number of slots. What it runs is what is executed; whole schedules of many
// ranks are not written out, so thousands of ranks fit.
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
#include <string_view>
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
  int scratch_chunks = 0;   // that held data, of the rank with the most
  std::uint64_t moves = 0;  // slices of steps
};

class Checker {
 public:
  // `orders` is that of all cases that must give the same bits: those that differ in count, slots
  // and slices only.
  Verdict check(const ProofCase& which, const StepSource& source, Orders& orders);

 private:
  // A step as the engine compiles it, or a fold of several. Steps are read where they were made:
  // nothing is copied, since a survey takes billions.
  struct Task {
    const Step* step = nullptr;  // of a fold, the last
    Link* in = nullptr;          // null: takes no message, or is a fold
    Link* out = nullptr;         // null: sends none
    std::uint64_t frame = 0;     // of the slice's messages
    std::uint32_t slices = 0;    // that are yet to be done
    std::uint16_t slice = 0;
    bool is_fold = false;
    bool is_empty = false;  // moves no data, but opens a link
  };
  // Where a rank is.
  struct State {
    Task task;
    const Range* parts = nullptr;  // what of each chunk moves in this pass
    std::uint32_t steps = 0;       // that were taken in it
    std::uint16_t pass = 0;
    bool is_done = false;
    std::optional<Steps> source;
    Chunk own_message;           // what it sent to itself, straight from input
    Chunk fold_begin;            // of a fold: `src` of its first step
    std::vector<int> fold;       // and whom its messages are from
    std::size_t fold_ready = 0;  // so many of those are there

    // Keeps what memory it has.
    void begin() {
      task = {};
      source.reset();
      pass = 0;
      is_done = false;
    }
  };

  // With all that it calls made one piece, since a survey does it billions of times. Plain are
  // cases in which all chunks are one slice, so that every step is one move.
  template <bool kPlain>
  [[gnu::flatten]] void go();

  // False if there is none, it waits or fails.
  template <bool kPlain>
  bool next_task(int rank, State& state, Task& task);
  template <bool kPlain>
  bool do_slice(int rank, const State& state, Task& task);
  template <bool kPlain>
  bool do_fold_slice(int rank, State& state, Task& task);

  // Each false if something is wrong, which is in the verdict then.
  bool begin(const ProofCase& which, const StepSource& source, Orders& orders);
  template <bool kPlain>
  bool take_step(int rank, State& state, Task& task);
  template <bool kPlain>
  bool take_fold(int rank, State& state, Task& task);
  bool end_pass(State& state);
  template <bool kPlain>
  bool label_of_task(int rank, const Chunk& src, const Chunk& extent, int& label);
  template <bool kPlain>
  bool open(int rank, const State& state, Task& task, bool& opens);
  template <bool kPlain>
  bool read(int rank, const State& state, const Task& task, const Chunk& chunk, Fingerprint& value);
  template <bool kPlain>
  bool keep(int rank, const State& state, const Task& task, bool was_reduced, Fingerprint& value);
  bool receive(const Task& task, int from, Link& link, Fingerprint& value);
  bool check_end();
  bool check_written(int rank);
  bool check_links_empty();
  [[gnu::noinline]] bool fail(std::string_view what);

  void cut_parts();
  void begin_pass(int rank, State& state);
  template <bool kPlain>
  static bool moves_data(const Task& task) {
    return kPlain || !task.is_empty;
  }
  template <bool kPlain>
  void size_task(const State& state, Task& task, const Chunk& extent, int label, bool opens_in,
                 bool opens_out);
  bool has_room(const Task& task);
  void send(const Task& task, const Fingerprint& value);
  static void end_slice(Task& task) {
    ++task.slice;
    ++task.frame;
    --task.slices;
  }
  const Range& part_of(const State& state, const Chunk& chunk) const {
    return state.parts[static_cast<std::size_t>(shape_.part_of(chunk))];
  }
  template <bool kPlain>
  std::size_t element_of(const State& state, const Task& task, const Chunk& chunk) const;
  static std::string where(int rank, const State& state);
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
  bool notes_openings_ = false;  // for what is sent without data, or to open links only
  bool is_plain_ = false;
  std::size_t passes_ = 1;
  std::size_t slices_a_pass_ = 1;  // of a chunk, at most
  std::uint32_t capacity_ = 2;
  std::uint32_t most_steps_ = 0;
  std::size_t in_flight_ = 0;
  std::size_t outputs_ = 0;  // elements that a rank with output must write
  std::vector<int> ready_;   // ranks that may go on; the last one is next
  Verdict verdict_;
};

}  // namespace catenary::proof
