#include "src/device/core_spread.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "src/base/config.h"

namespace catenary {
namespace {

constexpr std::int32_t kFirstPause_ns = 2'000'000;
constexpr std::int32_t kLongestPause_ns = 8'000'000;
constexpr std::int64_t kForgotten_ns = 1'000'000'000;

// A niced program takes a slice now and then, too: only who loses so much of them at once has
// moved to a place that is worse.
constexpr std::int64_t kTrial_ns = 20'000'000;
constexpr std::int32_t kBadTrial_us = 8'000;
constexpr std::int32_t kPauseAfterBadTrial_ns = 400'000'000;

// After a sleep, which may have led to where somebody else is. More than one, since the first may
// lead to him again.
constexpr std::int32_t kMovesSoon = 4;

// Two that share a core find out at the same time, and would go on together if both moved.
bool is_heads(std::int64_t now) noexcept {
  const auto coin = (static_cast<std::uint64_t>(now) ^ static_cast<std::uint64_t>(::gettid())) *
                    0x9e3779b97f4a7c15u;
  return coin >> 63 == 1;
}

// Of the calling thread; a yield is none.
std::int32_t sleeps_so_far() noexcept {
  rusage usage = {};
  return ::getrusage(RUSAGE_THREAD, &usage) == 0 ? static_cast<std::int32_t>(usage.ru_nvcsw) : 0;
}

// Onto another one of the cores that the calling thread may use; it may use all of them afterwards.
void leave_core() noexcept {
  cpu_set_t mine;
  if (::sched_getaffinity(0, sizeof mine, &mine) != 0 || CPU_COUNT(&mine) < 2) return;
  const int here = ::sched_getcpu();
  if (here < 0) return;
  cpu_set_t others = mine;
  CPU_CLR(static_cast<unsigned>(here), &others);
  if (::sched_setaffinity(0, sizeof others, &others) != 0) return;
  cpu_set_t now;
  const bool untouched = ::sched_getaffinity(0, sizeof now, &now) == 0 && CPU_EQUAL(&now, &others);
  if (!untouched) return;  // somebody has just said where this thread is to run
  if (::sched_setaffinity(0, sizeof mine, &mine) == 0) return;
  // Those cores were taken from the process meanwhile: wherever it may run now.
  std::memset(&mine, 0xff, sizeof mine);
  ::sched_setaffinity(0, sizeof mine, &mine);
}

}  // namespace

void CoreSpread::slice_lost(std::int64_t lost_ns, std::int64_t now) noexcept {
  if (now - lost_ns - moved_ns_ > kTrial_ns) return;
  lost_us_ += static_cast<std::int32_t>(std::min(lost_ns, kTrial_ns) / 1000);
  if (lost_us_ >= kBadTrial_us) pause_ns_ = kPauseAfterBadTrial_ns;
}

void CoreSpread::move_if_due(std::int64_t now) noexcept {
  if (Config::process().core_spread == 0) return;
  const std::int64_t since = now - moved_ns_;
  if (const std::int32_t sleeps = sleeps_so_far(); sleeps != sleeps_) {
    sleeps_ = sleeps;
    soon_ = kMovesSoon;
  }
  const bool has_to_wait = soon_ == 0 || pause_ns_ > kLongestPause_ns;
  if ((since < pause_ns_ && has_to_wait) || !is_heads(now)) return;
  const bool afresh = since > kForgotten_ns || pause_ns_ > kLongestPause_ns;
  pause_ns_ = afresh ? kFirstPause_ns : std::min(2 * pause_ns_, kLongestPause_ns);
  moved_ns_ = now;
  lost_us_ = 0;
  soon_ = std::max(soon_ - 1, 0);
  leave_core();
  sleeps_ = sleeps_so_far();  // a move is one, too
}

}  // namespace catenary
