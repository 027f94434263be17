// Locks and counts that cost one favoured thread next to nothing: no atomic read-modify-write, each
// of which takes as long as some twenty instructions. Most programs use a communicator from one
// thread; for the others these are an ordinary lock and an ordinary count.
//
// BiasedLock: a mutex. Who takes it with lock_often() first is favoured, until another thread wants
// it: that one takes the favour away, for ever, with a heavy fence.
//
// BiasedCount: how many are inside of something that may be closed. Who enters first is favoured.
//
// Any thread. lock() waits. Nothing fails. Not for memory that processes share.
#pragma once

#include <sched.h>

#include <atomic>
#include <cstdint>

#include "src/base/asymmetric_fence.h"

namespace catenary {

// What no other thread has at the same time.
class ThreadMark {
 public:
  static const void* mine() noexcept { return &byte_; }

 private:
  // In the thread's own block, which a library that is loaded late has room for too.
  [[gnu::tls_model("initial-exec")]] static inline constinit thread_local char byte_ = 0;
};

class BiasedLock {
 public:
  void lock() noexcept {
    if (favoured_.load(std::memory_order_relaxed) == ThreadMark::mine()) {
      inside_.store(true, std::memory_order_relaxed);
      light_fence();
      if (favoured_.load(std::memory_order_relaxed) == ThreadMark::mine()) {
        by_favour_ = true;
        return;
      }
      inside_.store(false, std::memory_order_release);
    }
    lock_plainly();
    end_favour();
  }

  // For the thread that is to be favoured.
  void lock_often() noexcept {
    if (favoured_.load(std::memory_order_relaxed) != nullptr) return lock();
    lock_plainly();
    if (favoured_.load(std::memory_order_relaxed) == nullptr) {
      const void* const favoured = has_asymmetric_fence() ? ThreadMark::mine() : nobody();
      favoured_.store(favoured, std::memory_order_relaxed);
    } else {
      end_favour();  // another thread was faster
    }
  }

  void unlock() noexcept {
    if (by_favour_) {
      by_favour_ = false;
      // Release: what we did is seen by who takes the favour away.
      inside_.store(false, std::memory_order_release);
    } else if (state_.exchange(kFree, std::memory_order_release) == kWanted) {
      state_.notify_one();
    }
  }

 private:
  static constexpr std::uint32_t kFree = 0;
  static constexpr std::uint32_t kHeld = 1;
  static constexpr std::uint32_t kWanted = 2;  // held, and somebody may sleep for it

  const void* nobody() const noexcept { return this; }

  void lock_plainly() noexcept {
    std::uint32_t seen = kFree;
    if (state_.compare_exchange_strong(seen, kHeld, std::memory_order_acquire)) return;
    while (state_.exchange(kWanted, std::memory_order_acquire) != kFree) {
      state_.wait(kWanted, std::memory_order_relaxed);
    }
  }

  // Under the plain lock. Either the favoured thread sees that it is that no more, or we see it
  // inside.
  void end_favour() noexcept {
    const void* const favoured = favoured_.load(std::memory_order_relaxed);
    if (favoured == nullptr || favoured == nobody()) return;
    favoured_.store(nobody(), std::memory_order_relaxed);
    heavy_fence();
    while (inside_.load(std::memory_order_acquire)) ::sched_yield();
  }

  std::atomic<const void*> favoured_{nullptr};  // null: open; nobody(): never again
  std::atomic<bool> inside_{false};             // the favoured thread holds it, or tries to
  bool by_favour_ = false;                      // its holder's
  std::atomic<std::uint32_t> state_{kFree};
};

class BiasedCount {
 public:
  // A full fence for who then looks whether it was closed.
  void enter() noexcept {
    if (is_favoured()) {
      own_.store(own_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
      light_fence();
    } else {
      others_.fetch_add(1, std::memory_order_seq_cst);
    }
  }
  // Release: what we did inside is seen by who finds nobody inside.
  void leave() noexcept {
    if (favoured_.load(std::memory_order_relaxed) == ThreadMark::mine()) {
      own_.store(own_.load(std::memory_order_relaxed) - 1, std::memory_order_release);
    } else {
      others_.fetch_sub(1, std::memory_order_release);
    }
  }
  // For who has closed it: from here on, who is not counted sees that.
  void shut() const noexcept {
    if (favoured_.load(std::memory_order_seq_cst) != nullptr) heavy_fence();
  }
  // After shut().
  int inside() const noexcept {
    return own_.load(std::memory_order_acquire) + others_.load(std::memory_order_seq_cst);
  }

 private:
  bool is_favoured() noexcept {
    const void* favoured = favoured_.load(std::memory_order_relaxed);
    if (favoured == nullptr && has_asymmetric_fence()) {
      // In one order with shut(): who is favoured after it sees that it was closed.
      favoured_.compare_exchange_strong(favoured, ThreadMark::mine(), std::memory_order_seq_cst);
      favoured = favoured_.load(std::memory_order_relaxed);
    }
    return favoured == ThreadMark::mine();
  }

  std::atomic<const void*> favoured_{nullptr};
  std::atomic<int> own_{0};
  std::atomic<int> others_{0};
};

}  // namespace catenary
