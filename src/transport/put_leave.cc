// The part of PutHub by which ranks part from each other.
#include <algorithm>

#include "src/base/error.h"
#include "src/transport/put_hub.h"

namespace catenary {
namespace {

// All of this process. Never destroyed: threads may outlive what is static.
std::mutex& hubs_mutex() {
  static auto* const mutex = new std::mutex;
  return *mutex;
}
std::vector<PutHub*>& hubs() {
  static auto* const all = new std::vector<PutHub*>;
  return *all;
}

}  // namespace

void PutHub::enlist(bool comes) {
  const std::lock_guard lock(hubs_mutex());
  if (comes) {
    hubs().push_back(this);
  } else {
    std::erase(hubs(), this);
  }
}

void PutHub::take_leave(const ControlWords& words) {
  Incoming& incoming = incoming_of(link_number(words.from, words.channel));
  if (!incoming.sent_in_all) incoming.sent_in_all = words.sent;
  take_word_of_arrival(words);
  answer_leave(incoming);
}

void PutHub::take_word_of_arrival(const ControlWords& words) {
  // Who leaves itself asks for nothing any more, whether or not it has heard.
  incoming_of(link_number(words.from, words.channel)).has_heard = true;
  const auto entry = outgoing_.find(link_number(words.from, words.channel));
  if (entry == outgoing_.end()) return;
  entry->second.arrived = std::max(entry->second.arrived, words.came);
}

// Once: with our own goodbye, or when all has come that the peer has sent.
void PutHub::answer_leave(Incoming& incoming) {
  if (!incoming.sent_in_all || incoming.came < *incoming.sent_in_all || incoming.is_answered) {
    return;
  }
  incoming.is_answered = true;
  say(ControlKind::kStay, incoming.spec, {.came = incoming.came});
}

// Who has left before us, and been answered, may be gone by now.
bool PutHub::needs_no_goodbye(const Incoming& incoming) const {
  const bool has_left = incoming.is_answered && !incoming.has_goodbye;
  return has_left || incoming.spec.peer == context_.rank || !incoming.failure.empty();
}

// A rank that has heard the last of its peers leaves nothing unread behind. That matters: a kernel
// that closes a connection with bytes unread takes back what it has not yet sent on it.
bool PutHub::try_drain() {
  poll_others();
  const std::lock_guard lock(mutex_);
  if (!failure_.empty()) return true;
  if (!is_leaving_) say_goodbye();
  if (!controls_.empty() || !port_->is_quiet()) return false;
  for (const auto& [number, incoming] : incoming_) {
    if (needs_no_goodbye(incoming)) continue;
    if (!incoming.has_heard) return false;
    const auto outgoing = outgoing_.find(number);
    if (outgoing == outgoing_.end() || !outgoing->second.failure.empty()) continue;
    const Outgoing& ours = outgoing->second;
    if (std::max(ours.arrived, ours.credited) < ours.committed) return false;
  }
  has_parted_ = std::ranges::all_of(incoming_,
                                    [](const auto& entry) { return entry.second.failure.empty(); });
  return true;
}

// Several ranks may leave one after the other in one thread: those that come later answer the peers
// of those that go first.
void PutHub::poll_others() {
  const std::lock_guard lock(hubs_mutex());
  for (PutHub* hub : hubs()) {
    if (hub == this || !hub->mutex_.try_lock()) continue;
    const std::lock_guard other(hub->mutex_, std::adopt_lock);
    try {
      if (hub->failure_.empty()) hub->move();
      // Its own threads are not told any more of what has come to it just now.
      if (hub->was_told_anything_ || hub->must_push_) hub->context_.wake();
    } catch (const Error&) {
      hub->context_.wake();  // theirs, which their links tell, and no reason for us not to leave
    }
  }
}

void PutHub::say_goodbye() {
  is_leaving_ = true;
  // Both ways of a link have one number, and one goodbye serves both.
  for (auto& [number, outgoing] : outgoing_) incoming_of(number);
  for (auto& [number, incoming] : incoming_) {
    if (needs_no_goodbye(incoming)) continue;
    const auto outgoing = outgoing_.find(number);
    const std::uint64_t sent = outgoing == outgoing_.end() ? 0 : outgoing->second.committed;
    incoming.is_answered = incoming.sent_in_all && incoming.came >= *incoming.sent_in_all;
    incoming.has_goodbye = true;
    say(ControlKind::kLeave, incoming.spec, {.sent = sent, .came = incoming.came});
  }
}

}  // namespace catenary
