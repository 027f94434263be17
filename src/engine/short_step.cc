#include "src/engine/short_step.h"

#include <cstring>

#include "src/base/copy.h"

namespace catenary {
namespace {

// Whether a step is one message, which nobody has to look after.
bool is_message(const PlannedStep& step) {
  if (step.fold_count > 0 || (step.recv == nullptr) == (step.send == nullptr)) return false;
  return step.recv != nullptr || step.send->is_flushed_by_commit();
}

// Whether a step keeps what the rank has.
bool is_own_copy(const PlannedStep& step) {
  return step.fold_count == 0 && step.recv == nullptr && step.send == nullptr &&
         step.src.buffer == Buffer::kInput && step.dst.buffer == Buffer::kOutput;
}

// A message, or a message to another rank and a copy of that for oneself.
bool are_short(const std::vector<PlannedStep>& steps) {
  if (steps.empty() || !is_message(steps[0])) return false;
  return steps.size() == 1 || (steps.size() == 2 && !steps[0].dst && is_own_copy(steps[1]));
}

}  // namespace

bool send_short(SendLink& link, const Descriptor& opening, ByteView data) {
  const std::size_t skip = opening_bytes(data.size());
  const ByteSpan slot = link.try_acquire(skip + data.size());
  if (slot.empty()) return false;
  std::memcpy(slot.data(), &opening, sizeof opening);
  if (data.size() >= kLeastLoan) {
    link.write(slot.data() + skip, data);
  } else if (!data.empty()) {
    std::memcpy(slot.data() + skip, data.data(), data.size());
  }
  link.commit_quietly(skip + data.size());
  return true;
}

const std::byte* peek_short(RecvLink& link, const Descriptor& opening, std::size_t bytes) {
  const ByteView message = link.try_peek();
  const std::size_t skip = opening_bytes(bytes);
  if (message.size() != skip + bytes) return nullptr;
  Descriptor theirs;
  std::memcpy(&theirs, message.data(), sizeof theirs);
  return theirs == opening ? message.data() + skip : nullptr;
}

ShortStep::ShortStep(const RunSpec& spec) {
  const Plan& plan = *spec.plan;
  const Slicing& slicing = spec.slicing;
  if (!are_short(plan.steps) || plan.chunk_count != 1 || plan.scratch_count > 0) return;
  if (spec.parts != nullptr || slicing.passes() != 1 || spec.copied_input > 0) return;
  if (spec.scaling.from != Scaling::From::kNothing) return;
  const Range whole = slicing.partition().chunk(0);
  const std::size_t bytes = whole.count * element_bytes(spec.descriptor.type);
  if (whole.offset != 0 || slicing.slices(whole) != 1 || bytes > kMostAtOnce) return;
  step_ = &plan.steps.front();
  keeps_ = step_->send != nullptr && plan.steps.back().dst;
  kernels_ = spec.kernels;
  count_ = whole.count;
  bytes_ = bytes;
  divisor_ = spec.divisor;
  descriptor_ = spec.descriptor;
}

bool ShortStep::try_do(const void* input, void* output, std::uint32_t sequence) {
  descriptor_.sequence = sequence;
  const auto* const in = static_cast<const std::byte*>(input);
  auto* const out = static_cast<std::byte*>(output);
  return step_->send != nullptr ? try_send(in, out) : try_take(in, out);
}

void ShortStep::ring_peer() const noexcept {
  if (step_->send != nullptr) {
    step_->send->ring_after_fence();
  } else {
    step_->recv->ring_after_fence();
  }
}

// Before the own copy is made, for which the peer need not wait.
bool ShortStep::try_send(const std::byte* input, std::byte* output) {
  const std::byte* const own = step_->src.buffer == Buffer::kInput ? input : output;
  if (!send_short(*step_->send, descriptor_, {own, bytes_})) return false;
  if (keeps_) copy_unless_same(output, own, bytes_);
  return true;
}

bool ShortStep::try_take(const std::byte* input, std::byte* output) {
  const std::byte* const received = peek_short(*step_->recv, descriptor_, bytes_);
  if (received == nullptr) return false;
  if (!step_->src) {
    copy(output, received, bytes_);
  } else {
    const std::byte* const own = step_->src.buffer == Buffer::kInput ? input : output;
    const bool received_first = step_->received_first;
    kernels_->reduce(output, received_first ? received : own, received_first ? own : received,
                     count_);
    if (divisor_ != 1) kernels_->divide(output, output, divisor_, count_);
  }
  step_->recv->release_quietly();
  return true;
}

}  // namespace catenary
