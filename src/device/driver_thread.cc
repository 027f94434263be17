#include "src/device/driver_thread.h"

#include <algorithm>
#include <exception>

#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/log.h"
#include "src/device/executor.h"
#include "src/device/process_life.h"
#include "src/device/thread.h"

namespace catenary {
namespace {

constexpr std::int64_t kGrace_ns = 100'000;  // before work that nobody drives is taken over
// Where it is not needed. Each takes some microseconds from who computes on its core.
constexpr std::int64_t kLongestNap_ns = 400'000;
// Where ranks outnumber the cores a waking thread takes a core from a rank that has work, and so it
// comes more rarely to those who drive all the time: so often in each nap.
constexpr std::int64_t kLongestCrowdedNap_ns = 6'400'000;
// Who has come by no more often than that within a nap may not come again soon.
constexpr std::int64_t kFewVisits = 4;
constexpr std::int64_t kDenseVisit_ns = 25'000;
constexpr std::int64_t kPatience_ns = 10'000'000;  // without work, before sleeping for good

}  // namespace

void DriverThread::wake() noexcept {
  const State before = state_.exchange(State::kArmed);
  if (before == State::kAsleep) bell_.ring();
  if (before != State::kAbsent || process_exiting()) return;
  try {
    start_thread(format("catenary-drv%d", executor_.ordinal() % 1000), [this] { serve(); });
  } catch (const std::exception& error) {
    state_.store(State::kAbsent);
    if (has_warned_.exchange(true)) return;
    CATENARY_WARN(
        format("device %d: cannot start its driver thread (%s; see ulimit -u): work goes on "
               "only while a thread waits for it",
               executor_.ordinal(), error.what()));
  }
}

bool DriverThread::is_there() noexcept {
  if (state_.load() == State::kAbsent) wake();
  return state_.load() != State::kAbsent && !process_exiting();
}

// Who hands over has published it before he rings, and here the nap is announced before looking:
// one of the two sees the other.
void DriverThread::hand_over() noexcept {
  arm();
  bell_.ring();
}

void DriverThread::nap(std::int64_t ns) {
  const Doorbell::Ticket ticket{&bell_, bell_.announce()};
  const bool is_needed = executor_.has_handed_over() && executor_.unwatched();
  if (!is_needed) Doorbell::wait_any({&ticket, 1}, ns);
  bell_.retract();
}

void DriverThread::serve() {
  std::int64_t nap_ns = kGrace_ns;
  std::int64_t worked_ns = now_ns();
  std::uint64_t seen = executor_.visits();
  while (!process_exiting()) {
    nap(nap_ns);
    const auto visits = static_cast<std::int64_t>(executor_.visits() - seen);
    const bool unwatched = executor_.unwatched();
    const bool dense = executor_.crowded() && visits * kDenseVisit_ns >= nap_ns;
    if (unwatched && visits <= kFewVisits) {
      nap_ns = kGrace_ns;
    } else {
      nap_ns = std::min(2 * nap_ns, dense ? kLongestCrowdedNap_ns : kLongestNap_ns);
    }
    if (unwatched) {
      if (visits == 0 || executor_.has_handed_over()) take_over();
      worked_ns = now_ns();
    } else if (now_ns() - worked_ns > kPatience_ns) {
      sleep_until_armed();
      nap_ns = kGrace_ns;
      worked_ns = now_ns();
    }
    seen = executor_.visits();
  }
}

void DriverThread::take_over() {
  at_work_.store(true);
  executor_.drive_unwatched();
  at_work_.store(false);
}

// Whoever leaves work behind publishes it before it looks at state_, and here state_ is published
// before looking for work: one of the two sees the other.
void DriverThread::sleep_until_armed() {
  state_.store(State::kAsleep);
  while (!process_exiting()) {
    const Doorbell::Ticket ticket{&bell_, bell_.announce()};
    const bool asleep = state_.load() == State::kAsleep && !executor_.unwatched();
    if (asleep) Doorbell::wait_any({&ticket, 1}, -1);
    bell_.retract();
    if (!asleep) break;
  }
  state_.store(State::kArmed);
}

}  // namespace catenary
