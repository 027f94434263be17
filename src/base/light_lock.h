// LightLock: a mutex for sections that are short and hardly ever contended, on paths where a call
// into the system's library would show. Any thread; lock() waits, asleep if it takes longer.
// Nothing fails. Not for memory that processes share.
#pragma once

#include <atomic>
#include <cstdint>

namespace catenary {

class LightLock {
 public:
  void lock() noexcept {
    std::uint32_t seen = kFree;
    // Acquire: what the last holder did is seen.
    if (state_.compare_exchange_strong(seen, kHeld, std::memory_order_acquire)) return;
    while (state_.exchange(kWanted, std::memory_order_acquire) != kFree) {
      state_.wait(kWanted, std::memory_order_relaxed);
    }
  }
  void unlock() noexcept {
    // Release: what we did is seen by the next holder.
    if (state_.exchange(kFree, std::memory_order_release) == kWanted) state_.notify_one();
  }

 private:
  static constexpr std::uint32_t kFree = 0;
  static constexpr std::uint32_t kHeld = 1;
  static constexpr std::uint32_t kWanted = 2;  // held, and somebody may sleep for it
  std::atomic<std::uint32_t> state_{kFree};
};

}  // namespace catenary
