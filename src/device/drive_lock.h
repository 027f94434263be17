// DriveLock: who holds it drives the device. Never waited for, only tried.
//
// A thread that finds it taken and is about to sleep asks to be told: unlock() then returns true
// and whoever unlocks rings the device's doorbell. All operations are sequentially consistent,
// because they pair with the inbox: either the one who tries gets the lock, or the one who holds it
// sees what the other published before trying. unlock() is a full fence besides: whoever unlocks
// has published what it did before it looks for those who sleep or wait for that.
//
// unlock_lightly() is none of that. It is for who leaves nothing behind that somebody would have to
// go on with. Who tries just then may find the lock taken, and nobody may look for what he has
// published: he rings, and whoever sleeps looks again soon, as for ring_lightly() (doorbell.h).
#pragma once

#include <atomic>
#include <cstdint>

#include "src/base/fence.h"

namespace catenary {

class DriveLock {
 public:
  bool try_lock() noexcept {
    std::uint32_t seen = state_.load();
    return seen == kFree && state_.compare_exchange_strong(seen, kHeld);
  }

  // Takes the lock, or leaves word that unlock() should tell.
  bool try_lock_or_ask() noexcept {
    std::uint32_t seen = state_.load();
    for (;;) {
      if (seen == kAsked) return false;
      const std::uint32_t wanted = seen == kFree ? kHeld : kAsked;
      if (state_.compare_exchange_weak(seen, wanted)) return wanted == kHeld;
    }
  }

  // True if somebody asked meanwhile.
  bool unlock() noexcept {
    const bool asked = state_.exchange(kFree) == kAsked;
    fence_after_rmw();
    return asked;
  }
  // Who asks just now may be missed.
  bool unlock_lightly() noexcept {
    const bool asked = state_.load(std::memory_order_relaxed) == kAsked;
    state_.store(kFree, std::memory_order_release);
    return asked;
  }

 private:
  static constexpr std::uint32_t kFree = 0;
  static constexpr std::uint32_t kHeld = 1;
  static constexpr std::uint32_t kAsked = 2;
  std::atomic<std::uint32_t> state_{kFree};
};

}  // namespace catenary
