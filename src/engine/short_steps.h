// ShortSteps: the steps of a collective of which every chunk is one short message, done without a
// run as far as they can be done now.
//
// Most operations of few bytes begin with a message that can be sent at once, and many are over
// with it, or with one that has come already. To make a run for them would take three times as long
// as all of that, and keep the peer waiting meanwhile. What must wait, or is out of the ordinary
// (another message than expected, say), is left for a run, which begins at that step and knows what
// to do about it. The same for sends and receives, which have no steps: send_short(), peek_short().
//
// Peers are not rung. That is for who has given the drive lock back, which is the fence that it
// takes (doorbell.h).
//
// Threads: who holds the drive lock; ring_peers() any. Nothing waits. Failure: what links throw.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/engine/framing.h"
#include "src/engine/schedule_run.h"

namespace catenary {

// Where there is more, to make a run takes no time beside it, and how it is moved matters more.
inline constexpr std::size_t kMostAtOnce = 8192;

// Sends a message that opens an operation and is all of it. False: there is no slot yet.
bool send_short(SendLink& link, const Descriptor& opening, ByteView data);
// The data of the next message, if that has come, opens so and has so many bytes.
struct ShortMessage {
  const std::byte* data = nullptr;
  bool is_another = false;  // one has come, but not that one
};
ShortMessage peek_short(RecvLink& link, const Descriptor& opening, std::size_t bytes);

class ShortSteps {
 public:
  ShortSteps() = default;
  // Of the only lane of a collective. None, if there are others than such steps.
  explicit ShortSteps(const RunSpec& spec);

  explicit operator bool() const { return plan_ != nullptr; }
  void begin(const void* input, void* output, std::uint32_t sequence);
  // Goes on as far as possible, unless a link throws.
  void try_do();
  // So many are done, the first ones.
  std::size_t done() const { return done_; }
  bool all_done() const { return done_ == plan_->steps.size(); }
  // Whether the next one has found another message than it expects.
  bool met_another() const { return met_another_; }
  // Those of the steps that are done.
  void ring_peers() const noexcept;
  // What was begun.
  const Descriptor& descriptor() const { return descriptor_; }

 private:
  struct Place {  // of a chunk, in bytes
    std::size_t offset;
    std::size_t bytes;
  };
  Place place_of(const Chunk& chunk) const {
    const Range range = partition_.chunk(chunk.index);
    return {range.offset << element_shift_, range.count << element_shift_};
  }
  std::byte* at(const Chunk& chunk) const;
  bool try_step(const PlannedStep& step);
  const std::byte* peek(const PlannedStep& step, std::size_t bytes);
  std::byte* acquire(const PlannedStep& step, std::size_t bytes) const;
  void reduce(const PlannedStep& step, std::byte* out, const std::byte* received,
              const std::byte* own, std::size_t bytes) const;

  const Plan* plan_ = nullptr;
  const kernels::ReduceKernels* kernels_ = nullptr;
  Partition partition_;
  int element_shift_ = 0;
  std::int64_t divisor_ = 1;
  Descriptor descriptor_;
  // Of what is being done.
  std::byte* input_ = nullptr;
  std::byte* output_ = nullptr;
  std::size_t done_ = 0;
  bool met_another_ = false;
};

}  // namespace catenary
