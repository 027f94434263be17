#include "src/comm/stall_watch.h"

#include <cstring>
#include <utility>

#include "src/base/error.h"
#include "src/base/log.h"

namespace catenary {
namespace {

// Long enough that ranks which get on well have nothing to say to each other, short enough that a
// person who made a mistake does not notice the wait.
constexpr std::int64_t kMoment_ns = 100'000'000;
// What the kernel has taken from a sender may be lost and sent again a few times.
constexpr std::int64_t kMostTravel_ns = 3'000'000'000;

}  // namespace

bool StallWatch::Standstill::lasts(std::uint64_t now_at, std::int64_t now_ns,
                                   std::int64_t span_ns) {
  if (now_at != state || since_ns == 0) {
    state = now_at;
    since_ns = now_ns;
    return false;
  }
  if (now_ns - since_ns < span_ns) return false;
  since_ns = now_ns;
  return true;
}

bool StallWatch::is_proof_due(const ScheduleRun* collective, std::uint64_t moves,
                              std::int64_t now_ns) {
  if (collective == nullptr) return communicator_.lasts(moves, now_ns, kMoment_ns);
  // Two that stand at one position, one after the other, are told apart by their numbers.
  const std::uint64_t number = collective->spec().descriptor.sequence;
  return collective_.lasts(number << 32 ^ collective->position(), now_ns, kMoment_ns);
}

bool StallWatch::is_suspicion_due(std::uint64_t moves, std::int64_t now_ns) {
  return patience_ns_ != 0 && suspicious_.lasts(moves, now_ns, patience_ns_);
}

bool StallWatch::is_untold(const Descriptor& collective) {
  return std::exchange(told_others_, collective.sequence) != collective.sequence;
}

// A link that is broken proves nothing: its peer may have left in peace, and who uses the link
// hears of it.
std::optional<Descriptor> StallWatch::unread_opening(int peer, Channel channel) {
  RecvLink* link = links_.recv_link_if_come(peer, channel);
  if (link == nullptr) return std::nullopt;
  ByteView message;
  try {
    message = link->try_peek();
  } catch (const Error&) {
    return std::nullopt;
  }
  Descriptor theirs;
  if (message.size() < sizeof theirs) return std::nullopt;
  std::memcpy(&theirs, message.data(), sizeof theirs);
  return theirs;
}

std::optional<Error> StallWatch::judge_link(int peer, const Ledger& ledger) {
  const std::optional<Descriptor> theirs = unread_opening(peer, Channel::kCollective);
  return theirs ? ledger.judge_unread(peer, *theirs) : std::nullopt;
}

void StallWatch::check_unread(const GroupRun::Waiting& waiting, int peer, Channel channel) {
  const std::optional<Descriptor> theirs = unread_opening(peer, channel);
  if (!theirs) return;
  throw_error(
      ErrorCode::kInvalidUsage,
      "ranks do not agree: rank %d waits in %s, but rank %d has issued %s, which rank %d has not; "
      "every rank must issue the same operations in the same order",
      rank_, describe(waiting.in).c_str(), peer, describe(*theirs).c_str(), rank_);
}

void StallWatch::check_gone(const GroupRun& run, const GroupRun::Waiting& waiting, const char* how,
                            std::uint64_t moves, bool shares_memory, std::int64_t now_ns) {
  if (how == nullptr) {
    gone_.erase(&run);
    return;
  }
  const auto [known, is_first] = gone_.try_emplace(&run);
  News& news = known->second;
  if (is_first || moves != news.moves || waiting.on != news.rank) {
    news = {run.polls(), moves, waiting.on, now_ns};
    return;
  }
  if (run.polls() == news.polls) return;
  if (!shares_memory && now_ns - news.since_ns < kMostTravel_ns) return;
  throw_error(ErrorCode::kRemote, "rank %d %s, but rank %d waits for it in %s", waiting.on, how,
              rank_, describe(waiting.in).c_str());
}

void StallWatch::tell(const GroupRun::Waiting& waiting, std::uint64_t moves) {
  if (std::exchange(told_log_, moves) == moves) return;
  log_notice(-1, format("rank %d has waited for rank %d for %lld s in %s", rank_, waiting.on,
                        static_cast<long long>(patience_ns_ / 1'000'000'000),
                        describe(waiting.in).c_str()));
}

}  // namespace catenary
