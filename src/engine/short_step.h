// ShortStep: a collective of which this rank has one short message to send, or one to take, and
// nothing else to do than to keep it.
//
// Most such operations are over in one look: there is a slot, or the message has come. Then no run
// has to be made, which would take three times as long as all of that. What is out of the ordinary
// (no slot, no message, or another one than expected) is left as it was, for a run, which knows
// what to do about it. The same for sends and receives, which have no step: send_short(),
// peek_short().
//
// Peers are not rung. That is for who has given the drive lock back, which is the fence that it
// takes (doorbell.h).
//
// Threads: who holds the drive lock; ring_peer() any. Nothing waits. Failure: what links throw;
// nothing was done then.
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
// The data of the next message, if that has come, opens so and has so many bytes. Null: it has not,
// or does not.
const std::byte* peek_short(RecvLink& link, const Descriptor& opening, std::size_t bytes);

class ShortStep {
 public:
  ShortStep() = default;
  // Of the only lane of a collective. None if that is more than such a step.
  explicit ShortStep(const RunSpec& spec);

  explicit operator bool() const { return step_ != nullptr; }
  // False: nothing was done.
  bool try_do(const void* input, void* output, std::uint32_t sequence);
  void ring_peer() const noexcept;
  // What it has done.
  const Descriptor& descriptor() const { return descriptor_; }

 private:
  bool try_send(const std::byte* input, std::byte* output);
  bool try_take(const std::byte* input, std::byte* output);

  const PlannedStep* step_ = nullptr;
  bool keeps_ = false;  // what it sends, too
  const kernels::ReduceKernels* kernels_ = nullptr;
  std::size_t count_ = 0;
  std::size_t bytes_ = 0;
  std::int64_t divisor_ = 1;
  Descriptor descriptor_;
};

}  // namespace catenary
