#include "src/device/absences.h"

#include <sys/resource.h>

#include <ctime>

#include "src/base/clock.h"

namespace catenary {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;

// To wake a sleeping thread takes some 20 us.
constexpr std::int64_t kLong_ns = 50'000;

// What is another address in each thread.
const void* this_thread() noexcept {
  static thread_local const char here = 0;
  return &here;
}

std::int64_t core_ns_of_thread() noexcept {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

std::int64_t sleeps_of_thread() noexcept {
  rusage usage{};
  ::getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nvcsw;
}

}  // namespace

void Absences::begin() noexcept {
  if (looks_closer_.load(kRelaxed)) {
    thread_.store(this_thread(), kRelaxed);
    core_ns_.store(core_ns_of_thread(), kRelaxed);
    sleeps_.store(sleeps_of_thread(), kRelaxed);
  }
  left_ns_.store(now_ns(), kRelaxed);
}

void Absences::count() noexcept {
  const std::int64_t left_ns = left_ns_.exchange(0, kRelaxed);
  if (left_ns == 0) return;
  const bool looked_closer = looks_closer_.load(kRelaxed);
  const bool is_long = now_ns() - left_ns >= kLong_ns;
  looks_closer_.store(is_long, kRelaxed);
  const std::uint32_t absent = is_long && looked_closer && was_absent() ? 1 : 0;
  recent_.store(recent_.load(kRelaxed) << 1 | absent, kRelaxed);
}

bool Absences::was_absent() const noexcept {
  if (thread_.load(kRelaxed) != this_thread()) return false;
  return core_ns_of_thread() - core_ns_.load(kRelaxed) >= kLong_ns ||
         sleeps_of_thread() != sleeps_.load(kRelaxed);
}

}  // namespace catenary
