#include "src/base/doorbell.h"

#include <linux/futex.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <ctime>

namespace catenary {
namespace {

#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif

// Where the kernel has no futex_waitv (before 5.16) only the first bell is watched, and the others
// are found by looking this often.
constexpr std::int64_t kBlindWait_ns = 500'000;
constexpr std::size_t kMostBells = 32;

struct WaitvEntry {  // struct futex_waitv of linux/futex.h, which older headers lack
  std::uint64_t value;
  std::uint64_t address;
  std::uint32_t flags;
  std::uint32_t reserved;
};
constexpr std::uint32_t kFutex32 = 2;
constexpr std::uint32_t kFutexPrivate = 128;

timespec to_timespec(std::int64_t ns) {
  return {static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
}

}  // namespace

void Doorbell::wake() noexcept {
  words_->epoch.fetch_add(1, std::memory_order_seq_cst);
  ::syscall(SYS_futex, &words_->epoch, shared_ ? FUTEX_WAKE : FUTEX_WAKE_PRIVATE, INT_MAX, nullptr,
            nullptr, 0);
  const int alarm = alarm_ == nullptr ? -1 : alarm_->load(std::memory_order_seq_cst);
  if (alarm >= 0) ::eventfd_write(alarm, 1);
}

void Doorbell::wait_any(std::span<const Ticket> tickets, std::int64_t timeout_ns) noexcept {
  const std::size_t count = std::min(tickets.size(), kMostBells);
  if (count > 1) {
    WaitvEntry entries[kMostBells];
    for (std::size_t i = 0; i < count; ++i) {
      const Doorbell& bell = *tickets[i].bell;
      entries[i] = {tickets[i].epoch, reinterpret_cast<std::uint64_t>(&bell.words_->epoch),
                    kFutex32 | (bell.shared_ ? 0 : kFutexPrivate), 0};
    }
    timespec until = {};
    clock_gettime(CLOCK_MONOTONIC, &until);
    until = to_timespec(until.tv_sec * 1'000'000'000LL + until.tv_nsec +
                        std::max<std::int64_t>(timeout_ns, 0));
    const long result = ::syscall(SYS_futex_waitv, entries, count, 0,
                                  timeout_ns < 0 ? nullptr : &until, CLOCK_MONOTONIC);
    if (result >= 0 || errno == EAGAIN || errno == EINTR || errno == ETIMEDOUT) return;
    // Not there, or kept from us by a sandbox.
    timeout_ns = timeout_ns < 0 ? kBlindWait_ns : std::min(timeout_ns, kBlindWait_ns);
  }
  if (count == 0) {
    const timespec pause = to_timespec(timeout_ns < 0 ? kBlindWait_ns : timeout_ns);
    ::nanosleep(&pause, nullptr);
    return;
  }
  const Doorbell& bell = *tickets[0].bell;
  const timespec relative = to_timespec(std::max<std::int64_t>(timeout_ns, 0));
  ::syscall(SYS_futex, &bell.words_->epoch, bell.shared_ ? FUTEX_WAIT : FUTEX_WAIT_PRIVATE,
            tickets[0].epoch, timeout_ns < 0 ? nullptr : &relative, nullptr, 0);
}

}  // namespace catenary
