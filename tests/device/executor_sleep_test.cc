// Waiters without work sleep, are woken by what they wait for, and cost nothing meanwhile.
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "src/base/clock.h"
#include "src/device/device.h"
#include "tests/device/test_device.h"
#include "tests/device/test_task.h"

namespace catenary {
namespace {

using namespace std::chrono_literals;
using testing::comes_true;
using testing::fresh_device;
using testing::TestTask;

std::int64_t process_cpu_us() {
  rusage usage = {};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto us = [](const timeval& time) { return time.tv_sec * 1'000'000LL + time.tv_usec; };
  return us(usage.ru_utime) + us(usage.ru_stime);
}

TEST(ExecutorSleep, lasts_until_the_doorbell_of_a_task_rings) {
  Device& device = fresh_device();
  DoorbellWords words;
  Doorbell bell(words, false);
  std::atomic<bool> open{false};
  std::atomic<std::int64_t> polls{0};
  device.default_stream().enqueue(TaskPtr(new TestTask(
      [&] {
        ++polls;
        return open ? Task::Progress::kDone : Task::Progress::kNone;
      },
      &bell)));
  std::atomic<std::int64_t> rung_ns{0};
  std::thread ringer([&] {
    std::this_thread::sleep_for(60ms);
    rung_ns = now_ns();
    open = true;
    bell.ring();
  });
  const std::int64_t before_us = process_cpu_us();
  device.default_stream().synchronize();
  const std::int64_t woken_ns = now_ns();
  EXPECT_LT(process_cpu_us() - before_us, 20'000);
  EXPECT_LT(woken_ns - rung_ns, 20'000'000);  // less than the longest sleep
  ringer.join();
  device.quiesce_doorbells();
}

// Who rings without a fence may look for sleepers before what it has published is seen. That is as
// if it had not rung just when they announced themselves: here, from within their look.
TEST(ExecutorSleep, begins_with_a_short_one_for_those_who_ring_without_a_fence) {
  Device& device = fresh_device();
  std::int64_t least_ns = INT64_MAX;
  for (int i = 0; i < 5; ++i) {
    DoorbellWords words;
    Doorbell bell(words, false);
    std::int64_t published_ns = 0;
    device.default_stream().enqueue(TaskPtr(new TestTask(
        [&] {
          if (published_ns != 0) return Task::Progress::kDone;
          if (words.sleepers.load() != 0) published_ns = now_ns();
          return Task::Progress::kNone;
        },
        &bell)));
    device.default_stream().synchronize();
    least_ns = std::min(least_ns, now_ns() - published_ns);
    device.quiesce_doorbells();
  }
  EXPECT_LT(least_ns, 20'000'000);  // less than the longest sleep
}

// A task that nothing tells of but a descriptor.
class DescriptorTask {
 public:
  DescriptorTask() : descriptor_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  ~DescriptorTask() { ::close(descriptor_); }
  TaskPtr make() {
    auto task = std::make_unique<TestTask>([this] {
      ++polls;
      return open ? Task::Progress::kDone : Task::Progress::kNone;
    });
    task->descriptors = {descriptor_};
    return TaskPtr(task.release());
  }
  void tell() { ::eventfd_write(descriptor_, 1); }
  std::atomic<bool> open{false};
  std::atomic<int> polls{0};

 private:
  const int descriptor_;
};

// Whether `polls` stands still for so long, in some moment of the next seconds: on a busy machine a
// thread may take long until it falls asleep.
bool stands_still(const std::atomic<int>& polls, std::chrono::milliseconds so_long) {
  return comes_true([&] {
    const int before = polls;
    std::this_thread::sleep_for(so_long);
    return polls == before;
  });
}

TEST(ExecutorSleep, lasts_until_a_descriptor_of_a_task_tells) {
  Device& device = fresh_device();
  std::vector<std::int64_t> delays_ns;
  for (int round = 0; round < 5; ++round) {
    DescriptorTask task;
    device.default_stream().enqueue(task.make());
    std::atomic<std::int64_t> told_ns{0};
    std::atomic<bool> slept{false};
    std::thread teller([&] {
      // Without the descriptor it would look again after 1.6 ms.
      slept = stands_still(task.polls, 25ms);
      // Told at the beginning of the next of the longest sleeps, of 50 ms.
      comes_true([&, before = task.polls.load()] { return task.polls != before; });
      std::this_thread::sleep_for(5ms);
      told_ns = now_ns();
      task.open = true;
      task.tell();
    });
    device.default_stream().synchronize();
    delays_ns.push_back(now_ns() - told_ns);
    teller.join();
    EXPECT_TRUE(slept);
    device.quiesce_doorbells();
  }
  std::ranges::sort(delays_ns);
  EXPECT_LT(delays_ns[delays_ns.size() / 2], 20'000'000);
}

// Some descriptors of libfabric are readable whether or not there are news.
TEST(ExecutorSleep, does_not_spin_on_a_descriptor_that_tells_all_the_time) {
  Device& device = fresh_device();
  DescriptorTask task;
  task.tell();
  device.default_stream().enqueue(task.make());
  std::thread opener([&] {
    std::this_thread::sleep_for(100ms);
    task.open = true;
  });
  device.default_stream().synchronize();
  opener.join();
  EXPECT_LT(task.polls, 10'000);
  device.quiesce_doorbells();
}

// Who looks twice before a long sleep names them twice.
TEST(ExecutorSleep, is_long_with_many_descriptors) {
  Device& device = fresh_device();
  std::vector<std::unique_ptr<DescriptorTask>> tasks;
  for (int i = 0; i < 25; ++i) {
    tasks.push_back(std::make_unique<DescriptorTask>());
    device.create_inner_stream().enqueue(tasks.back()->make());
  }
  std::thread waiting([&] { device.synchronize(); });
  EXPECT_TRUE(stands_still(tasks[0]->polls, 25ms));  // blind, it would look again after 1.6 ms
  for (const auto& task : tasks) task->open = true;
  for (const auto& task : tasks) task->tell();
  waiting.join();
  device.quiesce_doorbells();
}

// By its own bell: of the threads that wait for one device only one waits for descriptors, and what
// another one submits meanwhile may be all that it waits for.
TEST(ExecutorSleep, on_descriptors_is_ended_by_other_threads) {
  Device& device = fresh_device();
  DescriptorTask task;
  device.default_stream().enqueue(task.make());
  std::vector<std::int64_t> delays_ns;
  for (int round = 0; round < 20; ++round) {
    std::atomic<bool> wanted{false};
    std::vector<std::int64_t> woken_ns(3);
    std::vector<std::thread> waiters;
    for (std::int64_t& woken : woken_ns) {
      waiters.emplace_back([&] {
        const auto is_wanted = [&] { return wanted.load(); };
        device.executor().drive_until(Condition(is_wanted), {});
        woken = now_ns();
      });
    }
    std::this_thread::sleep_for(6ms);
    const std::int64_t rung_ns = now_ns();
    wanted = true;
    device.doorbell().ring();
    for (std::thread& waiter : waiters) waiter.join();
    for (const std::int64_t woken : woken_ns) delays_ns.push_back(woken - rung_ns);
  }
  // A sleep that nothing ends takes 50 ms; a busy machine may delay some of the threads.
  std::ranges::sort(delays_ns);
  EXPECT_LT(delays_ns[delays_ns.size() * 3 / 4], 30'000'000);
  task.open = true;
  task.tell();
  device.default_stream().synchronize();
  device.quiesce_doorbells();
}

TEST(ExecutorSleep, uses_no_processor_time_while_idle) {
  Device& device = fresh_device();
  std::atomic<int> polls{0};
  device.default_stream().enqueue(TaskPtr(
      new TestTask([&] { return ++polls < 5 ? Task::Progress::kSome : Task::Progress::kDone; })));
  ASSERT_TRUE(comes_true([&] { return device.default_stream().idle(); }));
  device.default_stream().enqueue_host_function([](void*) {}, nullptr);
  device.synchronize();
  std::this_thread::sleep_for(100ms);  // the other tests' devices come to rest as well
  const std::int64_t before_us = process_cpu_us();
  std::this_thread::sleep_for(300ms);
  EXPECT_LT(process_cpu_us() - before_us, 2'000);
}

}  // namespace
}  // namespace catenary
