#include "src/base/biased_lock.h"

#include <gtest/gtest.h>

#include <mutex>
#include <thread>
#include <vector>

namespace catenary {
namespace {

TEST(BiasedLock, FavouredThreadAndOthersExcludeEachOther) {
  constexpr int kRounds = 20000;
  for (const bool late : {false, true}) {
    BiasedLock lock;
    long count = 0;  // plain, so that a race loses some and ThreadSanitizer sees it
    const auto work = [&](bool often) {
      for (int i = 0; i < kRounds; ++i) {
        if (often) {
          lock.lock_often();
        } else {
          lock.lock();
        }
        const std::lock_guard guard(lock, std::adopt_lock);
        ++count;
      }
    };
    if (late) work(true);  // the favour is taken from a thread that has had it for long
    std::vector<std::thread> threads;
    threads.emplace_back(work, true);
    threads.emplace_back(work, false);
    work(true);
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(count, kRounds * (late ? 4 : 3));
  }
}

TEST(BiasedLock, FavourIsTakenWhileTheLockIsHeld) {
  BiasedLock lock;
  lock.lock_often();
  lock.unlock();
  lock.lock_often();  // by favour, now
  std::atomic<bool> taken{false};
  std::thread other([&] {
    const std::lock_guard guard(lock);
    taken = true;
  });
  std::this_thread::yield();
  EXPECT_FALSE(taken);
  lock.unlock();
  other.join();
  EXPECT_TRUE(taken);
}

// The pattern of a handle: enter, look whether it was closed; close, wait until nobody is inside.
TEST(BiasedCount, NobodyIsInsideWhatWasClosedAndLeft) {
  for (int round = 0; round < 200; ++round) {
    BiasedCount count;
    std::atomic<bool> closed{false};
    int guarded = 1;  // plain: written after everybody has left
    const auto visit = [&] {
      for (;;) {
        count.enter();
        const bool over = closed.load(std::memory_order_seq_cst);
        if (!over) {
          EXPECT_EQ(guarded, 1);
        }
        count.leave();
        if (over) return;
      }
    };
    std::thread one(visit);
    std::thread two(visit);
    if (round % 2 == 0) std::this_thread::yield();
    closed.store(true, std::memory_order_seq_cst);
    count.shut();
    while (count.inside() > 0) std::this_thread::yield();
    guarded = 2;
    one.join();
    two.join();
    EXPECT_EQ(count.inside(), 0);
  }
}

TEST(BiasedCount, CallsWithinCallsCount) {
  BiasedCount count;
  count.enter();
  count.enter();
  count.leave();
  EXPECT_EQ(count.inside(), 1);
  count.leave();
  EXPECT_EQ(count.inside(), 0);
}

}  // namespace
}  // namespace catenary
