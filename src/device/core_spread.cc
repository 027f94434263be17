#include "src/device/core_spread.h"

#include <sched.h>

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
  const std::int64_t since = now - moved_ns_;
  if (since < pause_ns_ || Config::process().core_spread == 0) return;
  const bool afresh = since > kForgotten_ns || pause_ns_ > kLongestPause_ns;
  pause_ns_ = afresh ? kFirstPause_ns : std::min(2 * pause_ns_, kLongestPause_ns);
  moved_ns_ = now;
  lost_us_ = 0;
  leave_core();
}

}  // namespace catenary
