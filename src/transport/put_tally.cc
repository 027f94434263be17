// The part of PutHub that finds out what was lost on the way.
//
// A provider over sockets connects anew when a connection breaks, and nobody is told of what lay in
// its buffers: the sender's puts are done, and the receiver knows of no message that should have
// come. So who waits, for whatever, says of links that have been quiet for a second how many
// messages it has put and how many slots it has given back, and says it again once in a patience,
// as that may be lost as well. A peer that lacks some of it, looks, and gets nothing more for as
// long as the patience, gives the link up. And who has got no answer yet asks again for a ring.
#include <algorithm>
#include <utility>

#include "src/base/error.h"
#include "src/transport/put_hub.h"
#include "src/transport/put_words.h"

namespace catenary {
namespace {

constexpr std::int64_t kLookEvery_ns = 100'000'000;
constexpr std::int64_t kQuiet_ns = 1'000'000'000;
// Who looks so rarely has done something else, and what came meanwhile is not seen yet.
constexpr std::int64_t kLongAgo_ns = 1'000'000'000;

}  // namespace

void PutHub::compare_tallies(std::int64_t now_ns, std::int64_t patience_ns) {
  const std::lock_guard lock(mutex_);
  if (!failure_.empty() || is_leaving_ || now_ns - tallied_ns_ < kLookEvery_ns) return;
  const bool was_away = now_ns - tallied_ns_ > kLongAgo_ns;
  tallied_ns_ = now_ns;
  for (const auto& [number, outgoing] : outgoing_) incoming_of(number);
  for (auto& [number, incoming] : incoming_) {
    if (!incoming.failure.empty() || incoming.sent_in_all) continue;
    const auto outgoing = outgoing_.find(number);
    Outgoing* const ours = outgoing == outgoing_.end() ? nullptr : &outgoing->second;
    say_tally(incoming, ours, now_ns, patience_ns);
    if (!lacks_some(incoming, ours, was_away, now_ns, patience_ns)) continue;
    give_up_what_lacks(incoming, ours);
  }
}

void PutHub::say_tally(Incoming& incoming, const Outgoing* ours, std::int64_t now_ns,
                       std::int64_t patience_ns) {
  const PutTally tally = {ours == nullptr ? 0 : ours->put, incoming.credited};
  PutTallies& tallies = incoming.tallies;
  if (tally != tallies.ours || tallies.say_at_ns == 0) {
    tallies.ours = tally;
    tallies.say_at_ns = now_ns + kQuiet_ns;
  }
  const bool is_busy = ours != nullptr && (ours->flights != 0 || !ours->failure.empty());
  if (is_busy || now_ns < tallies.say_at_ns) return;
  // One that is late for hours may take no more of it.
  const auto is_to_peer = [&](const auto& waiting) { return waiting.first == incoming.spec.peer; };
  if (std::ranges::any_of(controls_, is_to_peer)) return;
  tallies.say_at_ns = now_ns + patience_ns;
  if (ours != nullptr && !ours->ring) ask_for_ring(*ours);
  if (tally == PutTally{}) return;
  say(ControlKind::kTally, incoming.spec, {.sent = tally.put, .came = tally.credited});
}

void PutHub::take_tally(const ControlWords& words) {
  PutTally& theirs = incoming_of(link_number(words.from, words.channel)).tallies.theirs;
  theirs.put = std::max(theirs.put, words.sent);
  theirs.credited = std::max(theirs.credited, words.came);
}

// For as long as the patience, in which something would have come: what is slow is not lost.
bool PutHub::lacks_some(Incoming& incoming, const Outgoing* ours, bool was_away,
                        std::int64_t now_ns, std::int64_t patience_ns) {
  PutTallies& tallies = incoming.tallies;
  const PutTally come = {incoming.came, ours == nullptr ? 0 : ours->credited};
  const bool lacks =
      tallies.theirs.put > come.put || (ours != nullptr && tallies.theirs.credited > come.credited);
  const bool moves = come != std::exchange(tallies.come, come);
  if (!lacks) tallies.lacks_since_ns = 0;
  if (!lacks) return false;
  if (moves || was_away || tallies.lacks_since_ns == 0) tallies.lacks_since_ns = now_ns;
  return now_ns - tallies.lacks_since_ns >= patience_ns;
}

void PutHub::give_up_what_lacks(Incoming& incoming, Outgoing* ours) {
  const PutTallies& tallies = incoming.tallies;
  was_told_anything_ = true;  // runs that are polled again will see it
  incoming.failure = format(
      "it sent %llu messages and gave back %llu slots, of which %llu and %llu have come; the rest "
      "was lost with a connection",
      static_cast<unsigned long long>(tallies.theirs.put),
      static_cast<unsigned long long>(tallies.theirs.credited),
      static_cast<unsigned long long>(tallies.come.put),
      static_cast<unsigned long long>(tallies.come.credited));
  if (ours != nullptr && ours->failure.empty()) ours->failure = incoming.failure;
}

// Of what is put, by its word: only holders of the key know that.
void PutHub::was_cut(std::uint32_t told) {
  was_told_anything_ = true;
  control_failed(static_cast<int>(link_of(told) / kChannelCount),
                 "a connection broke off in the middle of a message");
}

}  // namespace catenary
