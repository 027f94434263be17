#include "src/device/executor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <thread>
#include <vector>

#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/device/device.h"
#include "src/device/event.h"
#include "tests/device/test_device.h"
#include "tests/device/test_task.h"

namespace catenary {
namespace {

using namespace std::chrono_literals;
using testing::comes_true;
using testing::fresh_device;
using testing::task_of;
using testing::task_until;
using testing::TestTask;

TEST(Executor, is_driven_by_the_thread_that_waits) {
  Device& device = fresh_device();
  Stream& stream = *device.create_stream(true);
  const std::thread::id waiter = std::this_thread::get_id();
  std::atomic<bool> waiting{false};
  stream.enqueue(task_until([&] { return waiting && std::this_thread::get_id() == waiter; }));
  EXPECT_FALSE(stream.idle());
  waiting = true;
  stream.synchronize();
  EXPECT_TRUE(stream.idle());
}

// Neither the thread that enqueues nor the device's own waits; who does, from his first look on.
TEST(Executor, tells_tasks_whether_somebody_waits_for_them) {
  Device& device = fresh_device();
  Stream& stream = *device.create_stream(true);
  const std::thread::id waiter = std::this_thread::get_id();
  bool waits = false;
  std::vector<bool> told;
  std::atomic<bool> polled_by_driver{false};
  stream.enqueue(task_until([&] {
    const bool is_waiter = std::this_thread::get_id() == waiter;
    polled_by_driver = polled_by_driver || !is_waiter;
    if (is_waiter || !waits) told.push_back(device.executor().is_waited_for());
    return waits && is_waiter;
  }));
  ASSERT_TRUE(comes_true([&] { return polled_by_driver.load(); }));
  const auto hold = [&] { return waits = true; };
  ASSERT_TRUE(comes_true([&] { return device.executor().try_hold(Condition(hold)); }));
  const std::size_t before = told.size();
  stream.synchronize();
  ASSERT_EQ(told.size(), before + 1);
  EXPECT_TRUE(told.back());
  told.pop_back();
  EXPECT_EQ(std::ranges::count(told, true), 0);
}

// Whoever hears of a task from what it does may wait for its stream at once.
TEST(Executor, counts_a_task_before_it_is_polled) {
  Device& device = fresh_device();
  Stream& stream = *device.create_stream(true);
  bool was_idle = true;
  bool was_pending = false;
  stream.enqueue(task_of([&] {
    was_idle = stream.idle();
    was_pending = device.executor().pending();
  }));
  EXPECT_FALSE(was_idle);
  EXPECT_TRUE(was_pending);
  EXPECT_TRUE(stream.idle());
  EXPECT_FALSE(device.executor().pending());
}

struct TestBeginning final : Beginning {
  TestBeginning(Executor& at, std::function<Rest()> what) : executor(at), begins(std::move(what)) {}
  Rest begin() override { return begins(); }
  void tell_peers() noexcept override {
    ++tellings;
    const auto is_free = [] { return true; };
    EXPECT_TRUE(executor.try_hold(Condition(is_free))) << "the lock is not given back yet";
  }
  Executor& executor;
  std::function<Rest()> begins;
  int tellings = 0;
};

TEST(Executor, begins_at_once_what_nothing_is_before) {
  Device& device = fresh_device();
  Executor& executor = device.executor();
  Stream& stream = *device.create_stream(true);
  Stream& other = *device.create_stream(true);
  bool was_idle = true;
  TestBeginning whole(executor, [&] { return was_idle = stream.idle(), Beginning::Rest{}; });
  EXPECT_TRUE(executor.try_at_once(stream, whole));
  EXPECT_FALSE(was_idle) << "whoever hears of it may wait for the stream";
  EXPECT_EQ(whole.tellings, 1);
  EXPECT_TRUE(stream.idle());
  EXPECT_FALSE(executor.pending());

  int begun = 0;
  TestBeginning behind(executor, [&] { return ++begun, Beginning::Rest{}; });
  std::atomic<bool> over{false};
  other.enqueue(task_until([&] { return over.load(); }));
  EXPECT_FALSE(executor.try_at_once(stream, behind));
  EXPECT_EQ(begun, 0);
  EXPECT_EQ(behind.tellings, 0);
  over = true;
  EXPECT_TRUE(executor.try_at_once(stream, behind)) << "that is over by now";
  EXPECT_TRUE(other.idle());
  EXPECT_EQ(begun, 1);
}

TEST(Executor, queues_what_is_left_of_a_beginning) {
  Device& device = fresh_device();
  Stream& stream = *device.create_stream(true);
  std::vector<int> order;
  const auto rest = [&] { return task_of([&] { order.push_back(2); }); };
  TestBeginning waiting(device.executor(), [&] {
    return order.push_back(1), Beginning::Rest{rest(), true};
  });
  EXPECT_TRUE(device.executor().try_at_once(stream, waiting));
  EXPECT_EQ(order, std::vector<int>{1}) << "it was tried twice";
  EXPECT_FALSE(stream.idle());
  EXPECT_TRUE(device.executor().pending());
  stream.enqueue(task_of([&] { order.push_back(3); }));
  stream.synchronize();
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
  TestBeginning other(device.executor(), [&] { return Beginning::Rest{rest()}; });
  EXPECT_TRUE(device.executor().try_at_once(stream, other));
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3, 2})) << "it was not tried";
  EXPECT_TRUE(stream.idle());
}

// Nobody else waits for it: the device's own thread goes on.
TEST(Executor, does_not_forget_what_is_left_of_a_beginning) {
  Device& device = fresh_device();
  Stream& stream = *device.create_stream(true);
  std::atomic<bool> ran{false};
  TestBeginning waiting(device.executor(), [&] {
    return Beginning::Rest{task_of([&] { ran = true; }), true};
  });
  EXPECT_TRUE(device.executor().try_at_once(stream, waiting));
  EXPECT_TRUE(comes_true([&] { return ran.load(); }));
}

TEST(Executor, forgets_a_beginning_that_fails) {
  Device& device = fresh_device();
  Executor& executor = device.executor();
  Stream& stream = *device.create_stream(true);
  TestBeginning failing(
      executor, []() -> Beginning::Rest { throw_error(ErrorCode::kRemote, "a link is damaged"); });
  EXPECT_THROW(executor.try_at_once(stream, failing), Error);
  EXPECT_EQ(failing.tellings, 1) << "it may have done something before";
  EXPECT_TRUE(stream.idle());
  EXPECT_FALSE(executor.pending());
  bool ran = false;
  stream.enqueue(task_of([&] { ran = true; }));
  EXPECT_TRUE(ran);
}

TEST(Executor, polls_nothing_while_someone_looks) {
  Device& device = fresh_device();
  Executor& executor = device.executor();
  Stream& stream = *device.create_stream(true);
  std::atomic<bool> looking{false};
  std::atomic<bool> disturbed{false};
  std::atomic<bool> over{false};
  std::thread worker([&] {
    while (!over) {
      stream.enqueue(task_of([&] {
        if (looking) disturbed = true;
      }));
    }
    stream.synchronize();
  });
  int looks = 0;
  const auto look = [&] {
    looking = true;
    std::this_thread::sleep_for(1ms);
    looking = false;
    ++looks;
    return true;
  };
  EXPECT_TRUE(comes_true([&] { return executor.try_hold(Condition(look)) && looks > 20; }));
  over = true;
  worker.join();
  EXPECT_TRUE(stream.idle());
  EXPECT_FALSE(disturbed);
}

TEST(Executor, says_so_if_it_is_driven_while_someone_would_look) {
  Device& device = fresh_device();
  const auto look = [] { return true; };
  std::atomic<int> held{-1};
  device.default_stream().enqueue(
      task_of([&] { held = device.executor().try_hold(Condition(look)) ? 1 : 0; }));
  device.default_stream().synchronize();
  EXPECT_EQ(held, 0);
  EXPECT_TRUE(device.executor().try_hold(Condition(look)));
}

TEST(Executor, takes_over_when_nobody_waits) {
  Device& device = fresh_device();
  std::atomic<int> polls{0};
  device.default_stream().enqueue(TaskPtr(
      new TestTask([&] { return ++polls < 5 ? Task::Progress::kSome : Task::Progress::kDone; },
                   &device.doorbell())));
  EXPECT_TRUE(comes_true([&] { return polls == 5; }));
}

TEST(Executor, takes_over_again_after_it_went_to_sleep) {
  Device& device = fresh_device();
  for (int round = 0; round < 3; ++round) {
    std::atomic<int> polls{0};
    device.default_stream().enqueue(TaskPtr(
        new TestTask([&] { return ++polls < 5 ? Task::Progress::kSome : Task::Progress::kDone; },
                     &device.doorbell())));
    EXPECT_TRUE(comes_true([&] { return device.default_stream().idle(); }));
    std::this_thread::sleep_for(30ms);
  }
}

// Where ranks outnumber cores the thread comes rarely to those who drive without a pause, but not
// to those who only come by.
TEST(Executor, takes_over_between_visits_that_are_far_apart) {
  Device& device = fresh_device();
  device.note_ranks(1000, 1);
  Stream& stream = *device.create_stream(true);
  for (int i = 0; i < 20'000; ++i) {
    std::atomic<int> looks{3};
    stream.enqueue(task_until([&looks] { return --looks == 0; }));
    stream.synchronize();
  }
  constexpr int kPolls = 5000;
  std::atomic<int> polls{0};
  stream.enqueue(TaskPtr(new TestTask(
      [&polls] { return ++polls < kPolls ? Task::Progress::kSome : Task::Progress::kDone; })));
  EXPECT_TRUE(comes_true(
      [&] {
        std::this_thread::sleep_for(3ms);
        device.executor().visit();
        return polls.load() >= kPolls;
      },
      2s));
  stream.synchronize();
}

TEST(Executor, takes_over_what_a_waiter_leaves_behind) {
  Device& device = fresh_device();
  Stream& stream = *device.create_stream(true);
  Stream& other = *device.create_stream(true);
  std::atomic<bool> open{false};
  other.enqueue(task_until([&] { return open.load(); }));
  stream.enqueue(task_of([] {}));
  EXPECT_FALSE(drive_until(
      device, [] { return false; }, Wait{Deadline::after_ms(5), nullptr}));
  open = true;
  EXPECT_TRUE(comes_true([&] { return other.idle(); }));
}

TEST(Executor, polls_soon_again_what_has_no_doorbell) {
  Device& device = fresh_device();
  const std::int64_t open_ns = now_ns() + 3'000'000;
  device.default_stream().enqueue(task_until([=] { return now_ns() > open_ns; }));
  device.default_stream().synchronize();
  EXPECT_LT(now_ns() - open_ns, 40'000'000);
}

TEST(Executor, goes_on_with_others_while_a_failing_task_finds_out_why) {
  Device& device = fresh_device();
  Stream& failing = *device.create_stream(true);
  Stream& other = *device.create_stream(true);
  std::atomic<bool> other_is_done{false};
  std::atomic<int> polls{0};
  auto* task = new TestTask([&]() -> Task::Progress {
    // Lost, then nothing to tell until the other one is done, then lost for good.
    if (polls++ > 0 && !other_is_done) return Task::Progress::kNone;
    throw std::runtime_error("lost");
  });
  task->failures_until_over = 2;
  failing.enqueue(TaskPtr(task));
  EXPECT_FALSE(failing.idle());
  other.enqueue(task_of([&] { other_is_done = true; }));
  other.synchronize();
  failing.synchronize();
  EXPECT_TRUE(other_is_done);
  EXPECT_GE(polls, 2);
}

TEST(Executor, checks_a_stuck_task_about_once_a_millisecond) {
  Device& device = fresh_device();
  std::atomic<int> checks{0};
  std::atomic<bool> open{false};
  auto* task = new TestTask([&] { return open ? Task::Progress::kDone : Task::Progress::kNone; });
  task->on_check = [&] { ++checks; };
  device.default_stream().enqueue(TaskPtr(task));
  drive_until(
      device, [] { return false; }, Wait{Deadline::after_ms(50), nullptr});
  EXPECT_GE(checks, 5);
  EXPECT_LE(checks, 60);
  open = true;
  device.synchronize();
}

TEST(Executor, ends_a_wait_that_is_cancelled_or_past_its_deadline) {
  Device& device = fresh_device();
  std::atomic<bool> cancelled{false};
  std::thread canceller([&] {
    std::this_thread::sleep_for(10ms);
    cancelled = true;
    device.doorbell().ring();
  });
  const auto never = [] { return false; };
  EXPECT_FALSE(drive_until(device, never, Wait{Deadline::never(), &cancelled}));
  canceller.join();
  const std::int64_t from_ns = now_ns();
  EXPECT_FALSE(drive_until(device, never, Wait{Deadline::after_ms(20), nullptr}));
  EXPECT_GE(now_ns() - from_ns, 19'000'000);
}

TEST(Executor, lets_a_waiter_help_devices_that_nobody_waits_for) {
  Device& mine = fresh_device();
  Device& other = fresh_device();
  std::thread::id driver;
  // Each needs the other: with only one of them driven, neither would end.
  std::atomic<int> turn{0};
  const auto ping_pong = [&turn](int me, std::thread::id* last) {
    return TaskPtr(new TestTask([&turn, me, last] {
      if (last != nullptr) *last = std::this_thread::get_id();
      if (turn >= 200) return Task::Progress::kDone;
      if (turn % 2 != me) return Task::Progress::kNone;
      ++turn;
      return Task::Progress::kSome;
    }));
  };
  mine.default_stream().enqueue(ping_pong(0, nullptr));
  other.default_stream().enqueue(ping_pong(1, &driver));
  mine.default_stream().synchronize();
  other.default_stream().synchronize();
  EXPECT_EQ(turn, 200);
}

TEST(Executor, takes_tasks_from_many_threads) {
  Device& device = fresh_device();
  constexpr int kThreads = 4;
  constexpr int kTasks = 2000;
  std::atomic<int> done{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      Stream& stream = *device.create_stream(true);
      int last = -1;
      for (int i = 0; i < kTasks; ++i) {
        stream.enqueue(task_of([&done, &last, i] {
          EXPECT_EQ(last, i - 1);
          last = i;
          ++done;
        }));
        if (i % 100 == 0) stream.synchronize();
      }
      stream.synchronize();
      EXPECT_EQ(last, kTasks - 1);
      Device::destroy_stream(Device::handle_of(stream));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(done, kThreads * kTasks);
}

// Two threads, a device each, pass a token back and forth and ring each other's bells. They sleep
// as soon as they can, so a ring that got lost would cost the longest sleep of 50 ms.
TEST(Executor, loses_no_ring) {
  Device* devices[2] = {&fresh_device(), &fresh_device()};
  constexpr int kRounds = 4000;
  DoorbellWords words[2];
  Doorbell bells[2] = {Doorbell(words[0], false), Doorbell(words[1], false)};
  std::atomic<int> turn{0};
  const std::int64_t from_ns = now_ns();
  std::vector<std::thread> threads;
  for (int me = 0; me < 2; ++me) {
    devices[me]->note_ranks(1000, 1);  // more ranks than cores: short budgets
    threads.emplace_back([&, me] {
      Stream& stream = *devices[me]->create_stream(true);
      for (int round = me; round < kRounds; round += 2) {
        stream.enqueue(TaskPtr(new TestTask(
            [&turn, &bells, me, round] {
              if (turn.load() != round) return Task::Progress::kNone;
              turn.store(round + 1);
              bells[1 - me].ring();
              return Task::Progress::kDone;
            },
            &bells[me])));
        stream.synchronize();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (Device* device : devices) device->quiesce_doorbells();
  EXPECT_EQ(turn, kRounds);
  EXPECT_LT(now_ns() - from_ns, kRounds / 4 * 50'000'000LL);
}

// Several threads wait on one device for different streams whose tasks only other threads release.
TEST(Executor, wakes_every_waiter_of_a_device) {
  Device& device = fresh_device();
  device.note_ranks(1000, 1);
  constexpr int kThreads = 4;
  constexpr int kRounds = 200;
  std::atomic<int> released[kThreads] = {};
  DoorbellWords words[kThreads];
  std::vector<std::thread> waiters;
  std::atomic<int> left{kThreads};
  for (int t = 0; t < kThreads; ++t) {
    waiters.emplace_back([&, t] {
      Stream& stream = *device.create_stream(true);
      Doorbell bell(words[t], false);
      for (int round = 1; round <= kRounds; ++round) {
        stream.enqueue(task_until([&released, t, round] { return released[t] >= round; }, &bell));
        stream.synchronize();
      }
      device.quiesce_doorbells();  // others may sleep on this thread's bell as well
      --left;
    });
  }
  std::thread releaser([&] {
    for (int i = 0; left != 0; ++i) {
      const int t = i % kThreads;
      ++released[t];
      Doorbell(words[t], false).ring();
      if (i % 16 == 0) std::this_thread::sleep_for(50us);
    }
  });
  for (std::thread& waiter : waiters) waiter.join();
  releaser.join();
  for (const auto& count : released) EXPECT_GE(count, kRounds);
}

}  // namespace
}  // namespace catenary
