// What one thread at a time counts, under a lock, and others read without it.
#pragma once

#include <atomic>
#include <cstdint>

namespace catenary {

using Counter = std::atomic<std::uint64_t>;

// Cheaper than an atomic addition, which no single writer needs.
inline void count_up(Counter& counter, std::uint64_t by = 1) noexcept {
  counter.store(counter.load(std::memory_order_relaxed) + by, std::memory_order_release);
}
inline void count_down(Counter& counter) noexcept {
  counter.store(counter.load(std::memory_order_relaxed) - 1, std::memory_order_release);
}

}  // namespace catenary
