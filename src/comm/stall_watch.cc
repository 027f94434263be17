#include "src/comm/stall_watch.h"

#include <cstring>

#include "src/base/error.h"
#include "src/base/log.h"

namespace catenary {

bool StallWatch::is_due(std::uint64_t moves, std::int64_t now_ns) {
  if (moves != moves_seen_ || still_since_ns_ == 0) {
    moves_seen_ = moves;
    still_since_ns_ = now_ns;
    told_ = false;
    return false;
  }
  if (patience_ns_ == 0 || now_ns - still_since_ns_ < patience_ns_) return false;
  still_since_ns_ = now_ns;
  return true;
}

void StallWatch::check_unread(const ScheduleRun& waiting, int peer, Channel channel) {
  const ByteView message = links_.recv_link(peer, channel).try_peek();
  Descriptor theirs;
  if (message.size() < sizeof theirs) return;
  std::memcpy(&theirs, message.data(), sizeof theirs);
  throw_error(
      ErrorCode::kInvalidUsage,
      "ranks do not agree: rank %d waits in %s, but rank %d has issued %s, which rank %d has not; "
      "every rank must issue the same operations in the same order",
      rank_, describe(waiting.spec().descriptor).c_str(), peer, describe(theirs).c_str(), rank_);
}

void StallWatch::check_opening(const ScheduleRun& waiting, int peer) {
  if (!waiting.is_unopened(peer)) return;
  const ByteView message = links_.recv_link(peer, Channel::kCollective).try_peek();
  Descriptor theirs;
  if (message.size() < sizeof theirs) return;
  std::memcpy(&theirs, message.data(), sizeof theirs);
  const Descriptor& mine = waiting.spec().descriptor;
  if (theirs.sequence != mine.sequence || matches(mine, theirs)) return;
  throw_error(ErrorCode::kInvalidUsage,
              "ranks do not agree: rank %d waits in %s, but rank %d runs %s; every rank must issue "
              "the same "
              "operations in the same order",
              rank_, describe(mine).c_str(), peer, describe(theirs).c_str());
}

void StallWatch::check_left(const ScheduleRun& waiting, bool has_left, std::uint64_t polls,
                            std::uint64_t moves) {
  const bool is_news = !left_seen_ || moves != moves_at_news_;
  left_seen_ = has_left;
  if (!has_left) return;
  if (is_news) {
    polls_at_news_ = polls;
    moves_at_news_ = moves;
    return;
  }
  if (polls == polls_at_news_) return;
  throw_error(ErrorCode::kRemote,
              "rank %d has left the communicator, but rank %d waits for it in %s",
              waiting.waits_for(), rank_, describe(waiting.spec().descriptor).c_str());
}

void StallWatch::tell(const ScheduleRun& waiting) {
  if (told_) return;
  told_ = true;
  log_notice(-1, format("rank %d has waited for rank %d for %lld s in %s", rank_,
                        waiting.waits_for(), static_cast<long long>(patience_ns_ / 1'000'000'000),
                        describe(waiting.spec().descriptor).c_str()));
}

}  // namespace catenary
