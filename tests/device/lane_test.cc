#include "src/device/lane.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "src/base/clock.h"
#include "src/device/device.h"
#include "src/device/operations.h"
#include "tests/device/test_task.h"

namespace catenary {
namespace {

using namespace std::chrono_literals;
using testing::task_of;
using testing::TestTask;

Device& fresh_device() {
  static int next = 0;
  return Device::get(next++);
}

TEST(HostFunction, runs_in_order_on_another_thread) {
  Stream& stream = fresh_device().default_stream();
  struct Seen {
    int before = 0;
    int in_function = 0;
    std::thread::id thread;
  } seen;
  stream.enqueue(task_of([&] { seen.before = 1; }));
  stream.enqueue_host_function(
      [](void* data) {
        auto& s = *static_cast<Seen*>(data);
        s.in_function = s.before + 1;
        s.thread = std::this_thread::get_id();
      },
      &seen);
  int after = 0;
  stream.enqueue(task_of([&] { after = seen.in_function + 1; }));
  stream.synchronize();
  EXPECT_EQ(after, 3);
  EXPECT_NE(seen.thread, std::this_thread::get_id());
}

// While one stream sits in a user's function, the tasks and the large copies of others go on.
TEST(HostFunction, does_not_hold_up_other_streams) {
  Device& device = fresh_device();
  Stream& slow = *device.create_stream(true);
  Stream& other = *device.create_stream(true);
  std::atomic<bool> leave{false};
  slow.enqueue_host_function(
      [](void* data) {
        while (!*static_cast<std::atomic<bool>*>(data)) std::this_thread::sleep_for(1ms);
      },
      &leave);
  std::vector<char> from(4 * kMostPolledBytes, 'x');
  std::vector<char> to(from.size());
  other.enqueue_copy(to.data(), from.data(), from.size());
  int polls = 0;
  other.enqueue(TaskPtr(
      new TestTask([&] { return ++polls < 50 ? Task::Progress::kSome : Task::Progress::kDone; })));
  other.synchronize();
  EXPECT_EQ(polls, 50);
  EXPECT_EQ(to, from);
  EXPECT_FALSE(slow.idle());
  leave = true;
  slow.synchronize();
}

TEST(HostFunction, may_enqueue_and_wait_for_other_streams) {
  Device& device = fresh_device();
  struct Chain {
    Stream* other;
    std::atomic<int> ran{0};
  } chain{device.create_stream(true).get()};
  Stream& stream = *device.create_stream(true);
  stream.enqueue_host_function(
      [](void* data) {
        auto& c = *static_cast<Chain*>(data);
        c.other->enqueue(task_of([&c] { ++c.ran; }));
        c.other->synchronize();
        ++c.ran;
      },
      &chain);
  stream.synchronize();
  EXPECT_EQ(chain.ran, 2);
}

TEST(HostFunction, chains_finish_without_anyone_waiting) {
  Stream& stream = *fresh_device().create_stream(true);
  std::atomic<int> ran{0};
  for (int i = 0; i < 20; ++i) {
    stream.enqueue_host_function([](void* data) { ++*static_cast<std::atomic<int>*>(data); }, &ran);
  }
  const Deadline deadline = Deadline::after_ms(10'000);
  while (!stream.idle() && !deadline.passed()) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(ran, 20);
}

TEST(Copy, small_and_large_ones_are_in_order) {
  Stream& stream = fresh_device().default_stream();
  for (const std::size_t bytes :
       {std::size_t{1}, kMostPolledBytes, kMostPolledBytes + 1, 10 * kMostPolledBytes}) {
    std::vector<unsigned char> a(bytes, 1);
    std::vector<unsigned char> b(bytes, 2);
    stream.enqueue_fill(a.data(), 7, bytes);
    stream.enqueue_copy(b.data(), a.data(), bytes);
    stream.enqueue_fill(a.data(), 9, bytes);
    stream.synchronize();
    EXPECT_EQ(b, std::vector<unsigned char>(bytes, 7));
    EXPECT_EQ(a, std::vector<unsigned char>(bytes, 9));
  }
}

}  // namespace
}  // namespace catenary
