// ScheduleRun: one collective under way: a plan, its buffers, and a position in it.
//
// Chunks are cut into slices of at most one slot. A step holds its input slot until an output slot
// is free, so links need at least two slots; and a chunk may span at most slots-1 slots before a
// pass ends, so longer chunks run the schedule in several passes, each over a part of every chunk.
//
// Threads: advance() by whoever drives the device. Waiting: none. Failure: advance() throws Error,
// kInvalidUsage when a peer's operation does not match; the run is then over.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "src/base/size_literals.h"
#include "src/collective/partition.h"
#include "src/device/task.h"
#include "src/engine/descriptor.h"
#include "src/engine/framing.h"
#include "src/engine/plan.h"
#include "src/engine/scratch_memory.h"
#include "src/kernels/reduce.h"

namespace catenary {

// What scales inputs on the way in.
struct Scaling {
  enum class From : std::uint8_t { kNothing, kValue, kMemory };
  From from = From::kNothing;
  Scalar value = {};             // kValue
  const void* memory = nullptr;  // kMemory: read when the operation starts
};

// All that a run needs, copied into it.
struct RunSpec {
  const Plan* plan = nullptr;
  ScratchMemory* scratch = nullptr;                 // null where the plan needs none
  const kernels::ReduceKernels* kernels = nullptr;  // null where nothing is reduced
  const std::byte* input = nullptr;
  std::byte* output = nullptr;
  Slicing slicing{Partition{}, 64, 2};
  std::shared_ptr<const UnevenParts> parts;  // what the slicing's partition points to, if uneven
  Descriptor descriptor;
  Scaling scaling;
  std::int64_t divisor = 1;  // integer averages
  // Slices of fewer bytes are copied rather than lent; at least kLeastLoan.
  std::size_t least_loan = SIZE_MAX;
  // Of what goes to several peers: where less moves in a pass, each gets a copy.
  std::size_t least_staged = kAsFannedOut;
  static constexpr std::size_t kAsFannedOut = 0;  // as least_fanned_out() has it
  Fetching fetching = Fetching::kNever;
  bool in_place = false;  // input and output share memory
  // So many bytes of input are copied before anything is written, since they lie in the way.
  std::size_t copied_input = 0;
  // Output is written past the caches where nothing reads it again.
  bool past_caches = false;
  int rank = 0;
  // Specs of one communicator that have the same stamp differ in buffers, sequence and whether they
  // go past the caches at most. 0: like no other.
  std::uint64_t stamp = 0;
};

class ScheduleRun {
 public:
  ScheduleRun() = default;
  explicit ScheduleRun(const RunSpec& spec) {
    begin(spec, spec.input, spec.output, spec.descriptor.sequence);
  }

  // Begins a new life. Buffers and sequence are not the spec's.
  void begin(const RunSpec& spec, const void* input, void* output, std::uint32_t sequence);

  // So many steps are done already, before it has started.
  void skip(std::size_t steps) { step_ = steps; }

  // Does every step that can be done now.
  Task::Progress advance();
  // Whether advance() would find as little to take as the last time. The cheaper question.
  bool still_waits() const { return awaited_ != nullptr && awaited_->try_peek().empty(); }

  const RunSpec& spec() const { return spec_; }
  // Whether advance() was called before.
  bool started() const { return started_; }
  // Whether all is done, and peers only have to take what was sent.
  bool only_waits_to_be_taken() const { return started_ && pass_ == passes_; }
  // For reports of stalls: "waiting for rank 3" or "".
  int waits_for() const { return waits_for_; }
  // By peer: whether something was taken from it already, or is waited for now.
  std::vector<bool> opened_peers(int nranks) const;
  // It is given up: what is lent may change from now on, once there is no writer().
  void withdraw() const noexcept;
  // A rank that is writing to our output just now, a result or a piece of what it lent, or kNobody.
  int writer() const noexcept;
  // It is not waited for any more.
  void forbid_writer() noexcept;
  // Whether peers may write to our output while it runs: results, or pieces of what they lent.
  bool is_open_to_writers() const {
    return (spec_.plan->is_open_to_writers && spec_.least_loan != SIZE_MAX) || helps_;
  }
  // Helps a peer to copy what was lent to it, a piece of it: for who has nothing to do than to
  // wait, and may help at all. Whether there was one.
  bool may_help() const { return helps_ && started_; }
  bool help();
  // Another number whenever this has got on.
  std::uint64_t position() const {
    return (std::uint64_t{pass_} * spec_.plan->steps.size() + step_) << 32 | slice_;
  }

 private:
  // A peer that gives an operation up waits as long as it takes to put so much into its memory.
  static constexpr std::size_t kWrittenAtATime = 64_KB;

  struct Slice {
    std::size_t offset = 0;  // bytes into the pass's part of its chunk
    std::size_t bytes = 0;
    std::size_t rest = 0;  // from where it begins to the end of that part
  };

  // What is not copied into a slot, because it stays as it is: lent, or else sent from where it
  // lies. Of what is kept as well it may be the copy.
  struct Lent {
    ByteView memory;
    std::optional<Loan> loan = {};
    bool is_copy = false;
    bool is_exchanged = false;  // for what comes from that peer, if it lends that likewise
    std::size_t message_bytes() const { return loan ? sizeof *loan : memory.size(); }
  };
  // A slice long enough to be lent, on its way through a step.
  struct LongSlice {
    Slice slice;
    bool first = false;  // of the operation
    const std::byte* received = nullptr;
    const std::byte* own = nullptr;
    std::byte* kept = nullptr;
    std::byte* slot = nullptr;             // of the message that passes it on
    const std::byte* sent_from = nullptr;  // where the link takes what is sent, if not in the slot
    std::optional<Lent> lent = {};
  };
  // Nothing has come, or there is no room to go on; the operand is there; all is done.
  enum class Taken : std::uint8_t { kNothing, kOperand, kAll };

  void adopt(const RunSpec& spec);
  bool take_together(const PlannedStep& step, ByteView borrowed, const std::byte* own,
                     std::byte* kept);
  bool do_step(const PlannedStep& step);
  Slice slice_of(const Range& part);
  ByteView sent_next(const PlannedStep& step, const Slice& slice) const;
  bool may_go_whole(const PlannedStep& step, const Slice& slice);
  static bool goes_back(const PlannedStep& step);
  bool do_slice(const PlannedStep& step, Slice slice, bool first);
  bool do_long_slice(const PlannedStep& step, Slice slice, bool first);
  Taken take_operand(const PlannedStep& step, LongSlice& work);
  bool open_message(const PlannedStep& step, LongSlice& work);
  void move_long_slice(const PlannedStep& step, const LongSlice& work);
  bool do_returned_slice(const PlannedStep& step, Slice slice, bool first, ByteView received);
  void compute_for_both(const PlannedStep& step, const std::byte* received, const std::byte* own,
                        std::byte* kept, std::byte* result, std::size_t bytes);
  bool do_short_slice(const PlannedStep& step, Slice slice, bool first);
  bool do_fold_slice(const PlannedStep& step, Slice slice, bool first);

  std::optional<Lent> try_lend(const PlannedStep& step, Slice slice);
  bool may_exchange(const PlannedStep& step, Slice slice) const;
  bool do_exchanged_slice(const PlannedStep& step, Slice slice);
  // What was copied to the stage last, for several peers: of that chunk, in that pass.
  struct Staged {
    Chunk chunk = {};
    std::size_t pass = 0;
    const Stage* stage = nullptr;
    std::byte* memory = nullptr;  // null: there was no room
    std::size_t bytes = 0;        // from the beginning of the pass's part
  };
  bool may_stage(const PlannedStep& step, Slice slice) const;
  bool is_being_staged(const PlannedStep& step) const {
    return staged_.chunk == step.src && staged_.pass == pass_ &&
           staged_.stage == step.send->stage();
  }
  bool begin_to_stage(const PlannedStep& step, Slice slice);
  std::optional<Lent> stage(const PlannedStep& step, Slice slice);
  static bool may_send_from_memory(const PlannedStep& step, Slice slice);
  void send(const PlannedStep& step, bool opening, const std::optional<Lent>& lent, std::byte* slot,
            const std::byte* memory, std::size_t bytes);
  void check_still_lent(const RecvLink& link, int peer) const;
  ByteView peek(const PlannedStep& step, RecvLink& link, int peer, bool opening, Slice slice,
                std::byte* into = nullptr);
  static void release(RecvLink& link, Slice slice);
  std::byte* acquire(const PlannedStep& step, bool opening, std::size_t bytes);
  void check_opening(const PlannedStep& step, ByteView message, int peer) const;
  Descriptor opening_of(const PlannedStep& step, int sender) const;
  // Where a slice of a chunk lies; null for no chunk.
  const std::byte* source(const Chunk& chunk, Slice slice) const {
    if (!chunk) return nullptr;
    if (chunk.buffer != Buffer::kInput) return target(chunk, slice);
    return spec_.input + begin_of(chunk) + slice.offset;
  }
  std::byte* target(const Chunk& chunk, Slice slice) const {
    if (!chunk) return nullptr;
    if (chunk.buffer == Buffer::kScratch) {
      return scratch_ + static_cast<std::size_t>(chunk.index) * scratch_stride_ + slice.offset;
    }
    return spec_.output + begin_of(chunk) + slice.offset;
  }
  // Whether the result of operands, which may be null, is another than one of them.
  bool computes(const std::byte* received, const std::byte* own, bool own_is_input) const {
    return own != nullptr && ((scaled_ && own_is_input) || received != nullptr);
  }
  void combine(const PlannedStep& step, std::byte* out, const std::byte* received,
               const std::byte* own, bool scale_own, std::size_t count);
  // For the result of a slice; either may be null.
  struct Places {
    std::byte* kept = nullptr;
    std::byte* passed_on = nullptr;
    bool past_caches = false;  // what is kept
    ByteView soon = {};        // what is read soon
  };
  void apply(const PlannedStep& step, const std::byte* received, const std::byte* own,
             bool own_is_input, const Places& to, std::size_t bytes);
  void compute(const PlannedStep& step, const std::byte* received, const std::byte* own,
               bool own_is_input, const Places& to, std::size_t bytes);
  void sum_past_caches(const PlannedStep& step, const std::byte* received, const std::byte* own,
                       const Places& to, std::size_t bytes);
  void finish_average(std::byte* at, std::size_t bytes);
  // Where in its buffer the part of a chunk begins that moves in this pass.
  std::size_t begin_of(const Chunk& chunk) const {
    return is_lone_ ? lone_.offset : spec_.slicing.part(chunk, pass_).offset * element_bytes_;
  }
  std::size_t elements_in(std::size_t bytes) const { return bytes >> element_shift_; }
  void take_input();
  void take_scalar();
  void take_scratch();

  RunSpec spec_;
  bool is_lone_ = false;  // there is one chunk, and one slice of it
  Slice lone_;            // in the buffer, then
  Descriptor expected_;   // how peers open their messages, but those of an AlltoAllv
  bool scaled_ = false;
  std::size_t element_bytes_ = 1;  // a power of two
  int element_shift_ = 0;
  std::byte* scratch_ = nullptr;
  std::size_t scratch_stride_ = 0;  // bytes from one scratch chunk to the next
  std::unique_ptr<std::byte[]> input_copy_;
  std::size_t pass_ = 0;
  std::size_t passes_ = 1;
  std::size_t step_ = 0;
  std::size_t slice_ = 0;  // of the current step in the current pass
  bool started_ = false;
  bool copies_input_ = false;    // into slots: some of it was
  bool borrowed_ = false;        // from a peer, for the slice at hand
  std::byte* result_ = nullptr;  // where that peer wants what is made of it, too
  Staged staged_;
  // What was lent in exchange, and is to be kept as well once it is known how.
  struct OwnPart {
    const std::byte* from = nullptr;
    std::byte* to = nullptr;
    std::size_t bytes = 0;
  };
  OwnPart own_part_;
  int waits_for_ = kNobody;
  bool helps_ = false;           // long copies are made by both ranks, if one is free
  Combination combination_;      // so are sums, if it has a name
  bool is_copied_ = false;       // what was borrowed for the slice at hand is where it is kept
  RecvLink* copying_ = nullptr;  // the peer still has a part of such a copy
  RecvLink* awaited_ = nullptr;  // what the last advance() ended at, if it was that
};

}  // namespace catenary
