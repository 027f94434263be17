#include "src/engine/short_steps.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "src/base/copy.h"
#include "src/base/size_literals.h"

namespace catenary {
namespace {

// Where there are more, to make a run takes no time beside them.
constexpr std::size_t kMostSteps = 64;
// What takes so long that another thread may be left with it (absences.h) is not done in the call.
constexpr std::size_t kMostAtOnceInAll = 64_KB;

// Whether it needs no memory but the user's, and nobody has to look after it once it is done.
bool is_short(const PlannedStep& step) {
  const Buffer src = step.src.buffer;
  const Buffer dst = step.dst.buffer;
  return step.fold_count == 0 && src != Buffer::kScratch && src != Buffer::kCarry &&
         (dst == Buffer::kNone || dst == Buffer::kOutput) &&
         (step.send == nullptr || step.send->is_flushed_by_commit());
}

// The longest chunk, if there is something of every one but no more than one message carries, and
// not too much of all. Or 0.
std::size_t longest_if_short(const Slicing& slicing, int chunk_count, std::size_t element_bytes) {
  if (slicing.passes() != 1) return 0;
  std::size_t longest = 0;
  std::size_t total = 0;
  for (int chunk = 0; chunk < chunk_count; ++chunk) {
    const Range part = slicing.partition().chunk(chunk);
    if (slicing.slices(part) != 1) return 0;
    longest = std::max(longest, part.count * element_bytes);
    total += part.count * element_bytes;
  }
  return longest <= kMostAtOnce && total <= kMostAtOnceInAll ? longest : 0;
}

// The link knows the stores that are quickest, where there is more than a few lines.
void write(SendLink& link, std::byte* slot, ByteView data) {
  if (data.size() >= kLeastLoan) return link.write(slot, data);
  if (!data.empty()) std::memcpy(slot, data.data(), data.size());
}

void keep(RecvLink& link, std::byte* to, ByteView data) {
  if (data.size() >= kLeastLoan) return link.read(to, data);
  if (!data.empty()) std::memcpy(to, data.data(), data.size());
}

ShortMessage peek_short(RecvLink& link, const Descriptor& opening, std::size_t bytes) {
  const ByteView message = link.try_peek();
  const std::size_t skip = opening_bytes(bytes);
  if (message.size() != skip + bytes) return {.is_another = !message.empty()};
  Descriptor theirs;
  std::memcpy(&theirs, message.data(), sizeof theirs);
  return theirs == opening ? ShortMessage{.data = message.data() + skip}
                           : ShortMessage{.is_another = true};
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

ShortMessage keep_short(RecvLink& link, const Descriptor& opening, ByteSpan to) {
  const ShortMessage message = peek_short(link, opening, to.size());
  if (message.data != nullptr) keep(link, to.data(), {message.data, to.size()});
  return message;
}

ShortSteps::Move::Move(const PlannedStep& step, const Partition& partition,
                       std::size_t element_bytes)
    : recv(step.recv),
      send(step.send),
      bytes(partition.chunk(step.extent.index).count * element_bytes),
      src(step.src ? partition.chunk(step.src.index).offset * element_bytes : 0),
      dst(step.dst ? partition.chunk(step.dst.index).offset * element_bytes : 0),
      src_buffer(step.src.buffer),
      is_kept(static_cast<bool>(step.dst)),
      received_first(step.received_first),
      opens_recv(step.opens_recv),
      send_skip(static_cast<std::uint8_t>(step.opens_send ? opening_bytes(bytes) : 0)) {}

ShortSteps::ShortSteps(const RunSpec& spec) {
  const std::vector<PlannedStep>& steps = spec.plan->steps;
  const std::size_t bytes = element_bytes(spec.descriptor.type);
  if (spec.parts != nullptr || spec.copied_input > 0 || steps.size() > kMostSteps) return;
  if (spec.scaling.from != Scaling::From::kNothing) return;
  if (!std::ranges::all_of(steps, is_short)) return;
  longest_bytes_ = longest_if_short(spec.slicing, spec.plan->chunk_count, bytes);
  if (longest_bytes_ == 0) return;
  moves_.reserve(steps.size());
  for (const PlannedStep& step : steps) {
    moves_.emplace_back(step, spec.slicing.partition(), bytes);
    ++count_;
    if (step.send != nullptr || step.recv != nullptr) linked_ = count_;
    sends_ = sends_ || step.send != nullptr;
    receives_ = receives_ || step.recv != nullptr;
  }
  kernels_ = spec.kernels;
  element_shift_ = std::countr_zero(bytes);
  divisor_ = spec.divisor;
  descriptor_ = spec.descriptor;
}

void ShortSteps::ring_peers(std::size_t first, bool has_thrown) const noexcept {
  if (has_thrown) return ring_all_but(moves_[done_], first);
  const Move* const end = moves_.data() + std::min(done_, linked_);
  for (const Move* move = moves_.data() + first; move < end; ++move) {
    if (move->send != nullptr) move->send->ring_lightly();
    if (move->recv != nullptr) move->recv->ring_lightly();
  }
}

[[gnu::noinline]] void ShortSteps::ring_all_but(const Move& broken,
                                                std::size_t first) const noexcept {
  for (std::size_t i = first; i < std::min(done_, linked_); ++i) {
    const Move& move = moves_[i];
    if (move.send != nullptr && move.send != broken.send) move.send->ring_lightly();
    if (move.recv != nullptr && move.recv != broken.recv) move.recv->ring_lightly();
  }
}

// What is sent goes before the own copy is made, for which the peer need not wait.
bool ShortSteps::try_move(const Move& move) {
  const std::byte* received = nullptr;
  if (move.recv != nullptr) {
    received = peek(move);
    if (received == nullptr) return false;
  }
  std::byte* sent = nullptr;
  if (move.send != nullptr) {
    const ByteSpan slot = move.send->try_acquire(move.send_skip + move.bytes);
    if (slot.empty()) return false;
    if (move.send_skip > 0) std::memcpy(slot.data(), &descriptor_, sizeof descriptor_);
    sent = slot.data() + move.send_skip;
  }
  const std::byte* const own = move.src_buffer == Buffer::kNone    ? nullptr
                               : move.src_buffer == Buffer::kInput ? input_ + move.src
                                                                   : output_ + move.src;
  std::byte* const kept = move.is_kept ? output_ + move.dst : nullptr;
  const std::byte* result = received != nullptr ? received : own;
  if (received != nullptr && own != nullptr) {
    std::byte* const out = kept != nullptr ? kept : sent;
    reduce(move, out, received, own);
    result = out;
  }
  if (sent != nullptr) {
    if (sent != result) write(*move.send, sent, {result, move.bytes});
    move.send->commit_quietly(move.send_skip + move.bytes);
  }
  if (kept != nullptr && result == received) {
    keep(*move.recv, kept, {result, move.bytes});
  } else {
    copy_unless_same(kept, result, move.bytes);
  }
  if (move.recv != nullptr) move.recv->release_quietly();
  return true;
}

inline const std::byte* ShortSteps::peek(const Move& move) {
  if (move.opens_recv) {
    const ShortMessage message = peek_short(*move.recv, descriptor_, move.bytes);
    met_another_ = message.is_another;
    return message.data;
  }
  const ByteView message = move.recv->try_peek();
  met_another_ = !message.empty() && message.size() != move.bytes;
  return message.size() == move.bytes ? message.data() : nullptr;
}

// Integer averages divide where the sum is complete, which is where it is kept.
void ShortSteps::reduce(const Move& move, std::byte* out, const std::byte* received,
                        const std::byte* own) const {
  const std::size_t count = move.bytes >> element_shift_;
  kernels_->reduce(out, move.received_first ? received : own, move.received_first ? own : received,
                   count);
  if (divisor_ != 1 && move.is_kept) kernels_->divide(out, out, divisor_, count);
}

}  // namespace catenary
