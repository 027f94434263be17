// What is long is handed over to the executor's thread where callers go away, and only there.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
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
  // Something long, which takes two polls, and notes who made the first of them.
  void enqueue_long() {
    poller_ = std::thread::id();
    stream_.enqueue(TaskPtr(new TestTask([this] {
                      const bool is_first = poller_.load() == std::thread::id();
                      if (is_first) poller_ = std::this_thread::get_id();
                      return is_first ? Task::Progress::kSome : Task::Progress::kDone;
                    })),
                    Extent::kLong);
  }
  // Whether that was this thread.
  bool is_done_here(std::chrono::milliseconds away) {
    enqueue_long();
    std::this_thread::sleep_for(away);
    stream_.synchronize();
    return poller_.load() == std::this_thread::get_id();
  }
  void go_away_often() {
    for (int i = 0; i < 4; ++i) is_done_here(1ms);
  }
  static void compute() {
    const std::int64_t end = now_ns() + 1'000'000;
    while (now_ns() < end) {
    }
  }

  Device& device_ = fresh_device();
  Stream& stream_ = *device_.create_stream(true);
  std::atomic<std::thread::id> poller_{};
};

TEST_F(HandOver, is_where_callers_go_away) {
  EXPECT_TRUE(is_done_here(1ms)) << "nothing is known yet";
  EXPECT_TRUE(comes_true([this] { return !is_done_here(1ms); }));
}

TEST_F(HandOver, is_not_any_more_once_they_come_right_back) {
  go_away_often();
  for (int i = 0; i < 16; ++i) is_done_here(0ms);
  EXPECT_TRUE(is_done_here(1ms));
}

// Again and again, also after a sleep of its own. A loaded machine may not wake it in time.
TEST_F(HandOver, is_taken_up) {
  go_away_often();
  int left_to_it = 0;
  for (int i = 0; i < 200; ++i) left_to_it += is_done_here(i % 50 == 0 ? 30ms : 2ms) ? 0 : 1;
  EXPECT_GT(left_to_it, 100);
}

// Who waits for an event waits as well, although all is over when he comes.
TEST_F(HandOver, is_not_for_who_waits_by_events) {
  const auto wait = [this](bool asks) {
    Event event(false);
    stream_.record(event);
    if (asks) {
      while (!event.query()) {
      }
    } else {
      event.synchronize();
    }
    compute();
  };
  for (int i = 0; i < 20; ++i) {
    enqueue_long();
    wait(i % 2 == 0);
  }
  EXPECT_TRUE(is_done_here(0ms));
  for (int i = 0; i < 20; ++i) {
    enqueue_long();
    while (!stream_.query()) {
    }
    compute();
  }
  enqueue_long();
  EXPECT_EQ(poller_.load(), std::this_thread::get_id());
  stream_.synchronize();
}

// A mark is put behind it before the caller goes, by most programs.
TEST_F(HandOver, holds_for_what_comes_behind_it) {
  const auto marks_and_goes = [this](std::atomic<std::thread::id>& marker) {
    enqueue_long();
    stream_.enqueue(task_of([&] { marker = std::this_thread::get_id(); }));
    std::this_thread::sleep_for(2ms);
    stream_.synchronize();
  };
  int left_to_it = 0;
  for (int i = 0; i < 50; ++i) {
    std::atomic<std::thread::id> marker{};
    marks_and_goes(marker);
    const bool here =
        poller_.load() == std::this_thread::get_id() || marker.load() == std::this_thread::get_id();
    left_to_it += here ? 0 : 1;
  }
  EXPECT_GT(left_to_it, 25);
}

// Then what follows is short only, and may be a lot.
TEST_F(HandOver, is_not_for_who_does_other_things_here) {
  for (int i = 0; i < 20; ++i) {
    enqueue_long();
    for (int k = 0; k < 10; ++k) stream_.enqueue(task_of([] { compute(); }));
    stream_.synchronize();
  }
  enqueue_long();
  EXPECT_EQ(poller_.load(), std::this_thread::get_id());
  stream_.synchronize();
}

TEST_F(HandOver, is_not_without_a_thread) {
  const NoThreads none;
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(is_done_here(1ms));
}

}  // namespace
}  // namespace catenary
