// The part of PutHub that finds out what was lost on the way.
//
// A provider over sockets connects anew when a connection breaks, and nobody is told of what lay in
// its buffers: the sender's puts are done, and the receiver knows of no message that should have
// come. So a link that has been quiet for a second says once how many messages it has put and how
// many slots it has given back. What the peer still lacks after its patience was lost. And who has
// got no answer yet asks a second time for a ring.
#include "src/base/error.h"
#include "src/transport/put_hub.h"
#include "src/transport/put_words.h"

namespace catenary {
namespace {

constexpr std::int64_t kLookEvery_ns = 100'000'000;
constexpr std::int64_t kQuiet_ns = 1'000'000'000;

}  // namespace

void PutHub::compare_tallies(std::int64_t now_ns, std::int64_t patience_ns) {
  const std::lock_guard lock(mutex_);
  if (!failure_.empty() || is_leaving_ || now_ns - tallied_ns_ < kLookEvery_ns) return;
  tallied_ns_ = now_ns;
  for (const auto& [number, outgoing] : outgoing_) incoming_of(number);
  for (auto& [number, incoming] : incoming_) {
    if (!incoming.failure.empty() || incoming.sent_in_all) continue;
    say_tally(incoming, now_ns);
    miss_what_was_lost(incoming, now_ns, patience_ns);
  }
}

void PutHub::say_tally(Incoming& incoming, std::int64_t now_ns) {
  const auto outgoing = outgoing_.find(link_number(incoming.spec));
  const bool sends = outgoing != outgoing_.end();
  const PutTally tally = {sends ? outgoing->second.put : 0, incoming.credited};
  PutTallies& tallies = incoming.tallies;
  if (tally != tallies.ours || tallies.quiet_since_ns == 0) {
    tallies.ours = tally;
    tallies.quiet_since_ns = now_ns;
    tallies.is_said = false;
  }
  if (tallies.is_said || now_ns - tallies.quiet_since_ns < kQuiet_ns) return;
  if (sends && outgoing->second.flights != 0) return;
  tallies.is_said = true;
  if (sends && !outgoing->second.ring) ask_for_ring(outgoing->second);
  if (tally == PutTally{}) return;
  say(ControlKind::kTally, incoming.spec, {.sent = tally.put, .came = tally.credited});
}

void PutHub::take_tally(const ControlWords& words) {
  PutTallies& tallies = incoming_of(link_number(words.from, words.channel)).tallies;
  // What is repeated, or comes late, says less than we know.
  if (words.sent < tallies.theirs.put || words.came < tallies.theirs.credited) return;
  tallies.theirs = {words.sent, words.came};
  tallies.is_news = true;
}

void PutHub::miss_what_was_lost(Incoming& incoming, std::int64_t now_ns, std::int64_t patience_ns) {
  const auto outgoing = outgoing_.find(link_number(incoming.spec));
  Outgoing* const ours = outgoing == outgoing_.end() ? nullptr : &outgoing->second;
  PutTallies& tallies = incoming.tallies;
  if (std::exchange(tallies.is_news, false)) tallies.known_since_ns = now_ns;
  const std::uint64_t credited = ours == nullptr ? 0 : ours->credited;
  const bool lacks_messages = tallies.theirs.put > incoming.came;
  const bool lacks_credits = ours != nullptr && tallies.theirs.credited > credited;
  if (!lacks_messages && !lacks_credits) return;
  if (now_ns - tallies.known_since_ns < patience_ns) return;
  was_told_anything_ = true;  // runs that are polled again will see it
  incoming.failure = format(
      "it sent %llu messages and gave back %llu slots, of which %llu and %llu have come; the rest "
      "was lost with a connection",
      static_cast<unsigned long long>(tallies.theirs.put),
      static_cast<unsigned long long>(tallies.theirs.credited),
      static_cast<unsigned long long>(incoming.came), static_cast<unsigned long long>(credited));
  if (ours != nullptr && ours->failure.empty()) ours->failure = incoming.failure;
}

// Of what is put, by its word: only holders of the key know that.
void PutHub::was_cut(std::uint32_t told) {
  was_told_anything_ = true;
  control_failed(static_cast<int>(link_of(told) / kChannelCount),
                 "a connection broke off in the middle of a message");
}

}  // namespace catenary
