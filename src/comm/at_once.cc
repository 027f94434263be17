// The part of Communicator that does at once, without a run, what is over in one look
// (short_step.h).
//
// All is as if a run had done it in its first poll: the turn has come and gone, the stream counts a
// task. Under the issue lock and the drive lock together, so that nobody sees anything in between.
#include <cstring>

#include "src/comm/communicator.h"
#include "src/engine/short_step.h"

namespace catenary {
namespace {

// Both ends call it a send.
Descriptor opening_of(const MessageRequest& message, const Turn& turn) {
  return {.sequence = static_cast<std::uint32_t>(turn.taken),
          .kind = Collective::kSend,
          .type = message.type,
          .reduction = Reduction::kNone,
          .count = message.count};
}

}  // namespace

Attempt Communicator::try_at_once(const Requests& requests) {
  if (requests.size() != 1) return Attempt::kNotTried;
  return requests.messages.empty() ? try_at_once(requests.operations.front())
                                   : try_at_once(requests.messages.front());
}

Attempt Communicator::try_at_once(const OperationRequest& request) {
  Recipe* const recipe = recipes_[static_cast<std::size_t>(request.kind)].find(request);
  if (recipe == nullptr || !recipe->short_step) return Attempt::kNotTried;
  ShortStep& step = recipe->short_step;
  const auto is_done = [&] {
    Turn& turn = collective_turn_;
    const auto sequence = static_cast<std::uint32_t>(turn.taken);
    if (!may_begin(turn)) return false;
    if (!step.try_do(request.input, request.output, sequence)) return false;
    ledger_.begin(step.descriptor());
    note_done(turn);
    return true;
  };
  const Attempt attempt = device_.executor().try_at_once(*request.stream, Condition(is_done));
  if (attempt == Attempt::kDone) step.ring_peer();
  return attempt;
}

// Only what is one slice to whoever cuts it.
Attempt Communicator::try_at_once(const MessageRequest& message) {
  const std::size_t bytes = message.count * element_bytes(message.type);
  if (bytes > kMostAtOnce || bytes >= least_loan_ || message.peer == rank_)
    return Attempt::kNotTried;
  if (plans_->message_cut(bytes).slice_bytes < bytes) return Attempt::kNotTried;
  return message.sends ? try_to_send(message, bytes) : try_to_take(message, bytes);
}

Attempt Communicator::try_to_send(const MessageRequest& message, std::size_t bytes) {
  SendEnd& end = send_ends_[static_cast<std::size_t>(message.peer)];
  if (end.link == nullptr || !end.link->is_flushed_by_commit()) return Attempt::kNotTried;
  const ByteView data{static_cast<const std::byte*>(message.buffer), bytes};
  const auto is_done = [&] {
    if (!may_begin(end.turn)) return false;
    if (!send_short(*end.link, opening_of(message, end.turn), data)) return false;
    note_done(end.turn);
    return true;
  };
  const Attempt attempt = device_.executor().try_at_once(*message.stream, Condition(is_done));
  if (attempt == Attempt::kDone) end.link->ring_after_fence();
  return attempt;
}

Attempt Communicator::try_to_take(const MessageRequest& message, std::size_t bytes) {
  RecvEnd& end = recv_ends_[static_cast<std::size_t>(message.peer)];
  if (end.link == nullptr) return Attempt::kNotTried;
  const auto is_done = [&] {
    if (!may_begin(end.turn)) return false;
    const std::byte* const data = peek_short(*end.link, opening_of(message, end.turn), bytes);
    if (data == nullptr) return false;
    if (bytes > 0) std::memcpy(message.buffer, data, bytes);
    end.link->release_quietly();
    note_done(end.turn);
    return true;
  };
  const Attempt attempt = device_.executor().try_at_once(*message.stream, Condition(is_done));
  if (attempt == Attempt::kDone) end.link->ring_after_fence();
  return attempt;
}

// Nothing is before it, and nothing is wrong; if something is, a run finds out what.
inline bool Communicator::may_begin(const Turn& turn) const {
  return turn.idle() && !in_trouble_.load(std::memory_order_acquire);
}

inline void Communicator::note_done(Turn& turn) {
  turn.take();
  ++turn.serving;
  polled(true);
}

}  // namespace catenary
