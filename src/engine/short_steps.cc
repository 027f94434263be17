#include "src/engine/short_steps.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "src/base/copy.h"

namespace catenary {
namespace {

bool is_in_users_memory(const Chunk& chunk) {
  return !chunk || chunk.buffer == Buffer::kInput || chunk.buffer == Buffer::kOutput;
}

// Whether nobody has to look after a step that is done.
bool is_short(const PlannedStep& step) {
  return step.fold_count == 0 && is_in_users_memory(step.src) && is_in_users_memory(step.dst) &&
         (step.send == nullptr || step.send->is_flushed_by_commit());
}

// Whether there is something of every chunk, but no more than one message carries.
bool are_short(const Slicing& slicing, int chunk_count, std::size_t element_bytes) {
  if (slicing.passes() != 1) return false;
  for (int chunk = 0; chunk < chunk_count; ++chunk) {
    const Range part = slicing.partition().chunk(chunk);
    if (slicing.slices(part) != 1 || part.count * element_bytes > kMostAtOnce) return false;
  }
  return true;
}

// The link knows the stores that are quickest, where there is more than a few lines.
void write(SendLink& link, std::byte* slot, ByteView data) {
  if (data.size() >= kLeastLoan) return link.write(slot, data);
  if (!data.empty()) std::memcpy(slot, data.data(), data.size());
}

}  // namespace

bool send_short(SendLink& link, const Descriptor& opening, ByteView data) {
  const std::size_t skip = opening_bytes(data.size());
  const ByteSpan slot = link.try_acquire(skip + data.size());
  if (slot.empty()) return false;
  std::memcpy(slot.data(), &opening, sizeof opening);
  write(link, slot.data() + skip, data);
  link.commit_quietly(skip + data.size());
  return true;
}

ShortMessage peek_short(RecvLink& link, const Descriptor& opening, std::size_t bytes) {
  const ByteView message = link.try_peek();
  const std::size_t skip = opening_bytes(bytes);
  if (message.size() != skip + bytes) return {nullptr, !message.empty()};
  Descriptor theirs;
  std::memcpy(&theirs, message.data(), sizeof theirs);
  return theirs == opening ? ShortMessage{message.data() + skip} : ShortMessage{nullptr, true};
}

ShortSteps::ShortSteps(const RunSpec& spec) {
  const Plan& plan = *spec.plan;
  const std::size_t bytes = element_bytes(spec.descriptor.type);
  if (plan.steps.empty() || spec.parts != nullptr || spec.copied_input > 0) return;
  if (spec.scaling.from != Scaling::From::kNothing) return;
  if (!std::ranges::all_of(plan.steps, is_short)) return;
  if (!are_short(spec.slicing, plan.chunk_count, bytes)) return;
  plan_ = &plan;
  kernels_ = spec.kernels;
  partition_ = spec.slicing.partition();
  element_shift_ = std::countr_zero(bytes);
  divisor_ = spec.divisor;
  descriptor_ = spec.descriptor;
}

void ShortSteps::begin(const void* input, void* output, std::uint32_t sequence) {
  descriptor_.sequence = sequence;
  input_ = static_cast<std::byte*>(const_cast<void*>(input));  // only read
  output_ = static_cast<std::byte*>(output);
  done_ = 0;
  met_another_ = false;
}

void ShortSteps::try_do() {
  while (!all_done() && try_step(plan_->steps[done_])) ++done_;
}

void ShortSteps::ring_peers() const noexcept {
  for (std::size_t i = 0; i < done_; ++i) {
    const PlannedStep& step = plan_->steps[i];
    if (step.send != nullptr) step.send->ring_after_fence();
    if (step.recv != nullptr) step.recv->ring_after_fence();
  }
}

inline std::byte* ShortSteps::at(const Chunk& chunk) const {
  if (!chunk) return nullptr;
  return (chunk.buffer == Buffer::kInput ? input_ : output_) + place_of(chunk).offset;
}

// What is sent goes before the own copy is made, for which the peer need not wait.
inline bool ShortSteps::try_step(const PlannedStep& step) {
  const std::size_t bytes = place_of(step.extent).bytes;
  const std::byte* received = nullptr;
  if (step.recv != nullptr) {
    received = peek(step, bytes);
    if (received == nullptr) return false;
  }
  std::byte* sent = nullptr;
  if (step.send != nullptr) {
    sent = acquire(step, bytes);
    if (sent == nullptr) return false;
  }
  const std::byte* const own = at(step.src);
  std::byte* const kept = at(step.dst);
  const std::byte* result = received != nullptr ? received : own;
  if (received != nullptr && own != nullptr) {
    std::byte* const out = kept != nullptr ? kept : sent;
    reduce(step, out, received, own, bytes);
    result = out;
  }
  if (sent != nullptr) {
    if (sent != result) write(*step.send, sent, {result, bytes});
    step.send->commit_quietly((step.opens_send ? opening_bytes(bytes) : 0) + bytes);
  }
  if (kept != nullptr) copy_unless_same(kept, result, bytes);
  if (step.recv != nullptr) step.recv->release_quietly();
  return true;
}

inline const std::byte* ShortSteps::peek(const PlannedStep& step, std::size_t bytes) {
  if (step.opens_recv) {
    const ShortMessage message = peek_short(*step.recv, descriptor_, bytes);
    met_another_ = message.is_another;
    return message.data;
  }
  const ByteView message = step.recv->try_peek();
  met_another_ = !message.empty() && message.size() != bytes;
  return message.size() == bytes ? message.data() : nullptr;
}

inline std::byte* ShortSteps::acquire(const PlannedStep& step, std::size_t bytes) const {
  const std::size_t skip = step.opens_send ? opening_bytes(bytes) : 0;
  const ByteSpan slot = step.send->try_acquire(skip + bytes);
  if (slot.empty()) return nullptr;
  if (step.opens_send) std::memcpy(slot.data(), &descriptor_, sizeof descriptor_);
  return slot.data() + skip;
}

// Integer averages divide where the sum is complete.
inline void ShortSteps::reduce(const PlannedStep& step, std::byte* out, const std::byte* received,
                               const std::byte* own, std::size_t bytes) const {
  const std::size_t count = bytes >> element_shift_;
  kernels_->reduce(out, step.received_first ? received : own, step.received_first ? own : received,
                   count);
  if (divisor_ != 1 && step.dst.buffer == Buffer::kOutput) {
    kernels_->divide(out, out, divisor_, count);
  }
}

}  // namespace catenary
