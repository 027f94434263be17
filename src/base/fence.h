// Fences, as far as ThreadSanitizer, which knows none, does not stand in the way; and a hint to the
// caches.
//
// The first one is for places where a read-modify-write has just been done.
// Two threads that each store something and then look at what the other one stores (work and
// sleepers, mostly) must not both miss it. That takes a full fence between store and look on both
// sides: not even sequentially consistent operations order the relaxed and release stores around
// them with the loads that follow, and on weakly ordered machines such as ARM a load may overtake
// the store of a read-modify-write before it.
#pragma once

#include <atomic>

namespace catenary {

// All that this thread stored before its last atomic read-modify-write is seen by everyone before
// it loads anything after this. On x86 that instruction was a fence already, and only the compiler
// must be kept from moving loads.
inline void fence_after_rmw() noexcept {
#if defined(__x86_64__) || defined(__SANITIZE_THREAD__)  // which knows no fences
  std::atomic_signal_fence(std::memory_order_seq_cst);
#else
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

// Asks for the cache line to be ours alone, since we shall write to it in a moment.
inline void fetch_to_write(const void* at) noexcept {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(at)));
#else
  __builtin_prefetch(at, 1);
#endif
}

// Asks for the cache line to be there soon, to be read.
inline void fetch_to_read(const void* at) noexcept { __builtin_prefetch(at, 0); }

// Waits until the stores of this thread are in its caches, as far as the processor knows a way: for
// clocks, not for order.
inline void finish_stores() noexcept {
#if !defined(__SANITIZE_THREAD__)
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

// All that this thread has loaded was loaded before whatever it loads or stores after this.
inline void acquire_fence() noexcept {
#if defined(__SANITIZE_THREAD__)
  std::atomic_signal_fence(std::memory_order_acquire);
#else
  std::atomic_thread_fence(std::memory_order_acquire);
#endif
}

}  // namespace catenary
