// What is long is handed over to the executor's thread where callers go away, and only there.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

#include "src/base/clock.h"
#include "src/device/device.h"
#include "src/device/event.h"
#include "tests/device/test_device.h"
#include "tests/device/test_task.h"
#include "tests/support/no_threads.h"

namespace catenary {
namespace {

using namespace std::chrono_literals;
using testing::comes_true;
using testing::fresh_device;
using testing::NoThreads;
using testing::task_of;
using testing::TestTask;

class HandOver : public ::testing::Test {
 protected:
  // Something long, which notes who makes the first of its polls.
  void enqueue_long(int polls) {
    poller_ = std::thread::id();
    stream_.enqueue(TaskPtr(new TestTask([this, polls]() mutable {
                      if (poller_.load() == std::thread::id()) {
                        poller_ = std::this_thread::get_id();
                      }
                      return --polls > 0 ? Task::Progress::kSome : Task::Progress::kDone;
                    })),
                    Extent::kLong);
  }
  bool was_here() const { return poller_.load() == std::this_thread::get_id(); }
  // Until all is done, however long that takes, and for a while in any case: if the thread has got
  // our core, all may be done already.
  void go_away() {
    std::this_thread::sleep_for(1ms);
    EXPECT_TRUE(comes_true([this] { return stream_.idle(); }));
  }
  bool is_done_here_although_we_go_away() {
    enqueue_long(2);
    go_away();
    stream_.synchronize();
    return was_here();
  }
  void go_away_often() {
    for (int i = 0; i < 4; ++i) is_done_here_although_we_go_away();
  }
  static void compute() {
    const std::int64_t end = now_ns() + 1'000'000;
    while (now_ns() < end) {
    }
  }

  Device& device_ = fresh_device();
  Stream& stream_ = *device_.create_stream(false);
  std::atomic<std::thread::id> poller_{};
};

TEST_F(HandOver, is_where_callers_go_away) {
  EXPECT_TRUE(is_done_here_although_we_go_away()) << "nothing is known yet";
  EXPECT_TRUE(comes_true([this] { return !is_done_here_although_we_go_away(); }));
}

TEST_F(HandOver, is_not_any_more_once_they_come_right_back) {
  go_away_often();
  for (int i = 0; i < 16; ++i) {
    enqueue_long(2);
    stream_.synchronize();
  }
  EXPECT_TRUE(is_done_here_although_we_go_away());
}

// Again and again, also after a sleep of the thread's own.
TEST_F(HandOver, is_taken_up) {
  go_away_often();
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(is_done_here_although_we_go_away());
    if (i % 25 == 0) std::this_thread::sleep_for(30ms);
  }
}

// Who waits in another way than by synchronizing waits as well, although all is over when he comes.
TEST_F(HandOver, is_not_for_who_waits_however_he_does_that) {
  const std::function<void()> ways[] = {[this] {
                                          Event event(false);
                                          stream_.record(event);
                                          event.synchronize();
                                        },
                                        [this] {
                                          Event event(false);
                                          stream_.record(event);
                                          while (!event.query()) {
                                          }
                                        },
                                        [this] {
                                          while (!stream_.query()) {
                                          }
                                        },
                                        [this] { device_.wait_for_default_stream(); },
                                        [this] { device_.synchronize(); }};
  for (const auto& wait : ways) {
    for (int i = 0; i < 20; ++i) {
      enqueue_long(1);
      wait();
      compute();
    }
    enqueue_long(1);
    EXPECT_TRUE(was_here()) << "way " << &wait - ways;
    stream_.synchronize();
  }
}

// A mark is put behind it before the caller goes, by most programs.
TEST_F(HandOver, holds_although_something_short_comes_behind_it) {
  go_away_often();
  for (int i = 0; i < 50; ++i) {
    enqueue_long(2);
    stream_.enqueue(task_of([] {}));
    go_away();
    EXPECT_FALSE(was_here());
    stream_.synchronize();
  }
}

// Then what follows is short only, and may be a lot.
TEST_F(HandOver, is_not_for_who_does_other_things_here) {
  for (int i = 0; i < 20; ++i) {
    enqueue_long(1);
    for (int k = 0; k < 10; ++k) stream_.enqueue(task_of([] { compute(); }));
    stream_.synchronize();
  }
  enqueue_long(1);
  EXPECT_TRUE(was_here());
  stream_.synchronize();
}

TEST_F(HandOver, is_not_without_a_thread) {
  const NoThreads none;
  for (int i = 0; i < 10; ++i) {
    enqueue_long(1);
    EXPECT_TRUE(was_here());
    compute();
    stream_.synchronize();
  }
}

}  // namespace
}  // namespace catenary
