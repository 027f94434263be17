#include "src/device/stream.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "src/base/error.h"
#include "src/device/device.h"
#include "src/device/handles.h"
#include "tests/device/test_task.h"

namespace catenary {
namespace {

using testing::task_of;
using testing::task_until;
using testing::TestTask;

// A stream of a device of its own, so that tests do not meet.
Device& fresh_device() {
  static int next = 0;
  return Device::get(next++);
}

TEST(Stream, runs_a_ready_task_within_enqueue) {
  Stream& stream = fresh_device().default_stream();
  bool ran = false;
  stream.enqueue(task_of([&] { ran = true; }));
  EXPECT_TRUE(ran);
  EXPECT_TRUE(stream.idle());
}

TEST(Stream, runs_tasks_in_order) {
  Device& device = fresh_device();
  Stream& stream = *device.create_stream(false);
  std::atomic<bool> open{false};
  std::vector<int> seen;
  stream.enqueue(task_until([&] { return open.load(); }, &device.doorbell()));
  for (int i = 0; i < 100; ++i) stream.enqueue(task_of([&seen, i] { seen.push_back(i); }));
  EXPECT_TRUE(seen.empty());
  EXPECT_FALSE(stream.idle());
  open = true;
  stream.synchronize();
  ASSERT_EQ(seen.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(seen[static_cast<std::size_t>(i)], i);
  Device::destroy_stream(Device::handle_of(stream));
}

TEST(Stream, is_not_held_up_by_a_stuck_task_on_another) {
  Device& device = fresh_device();
  Stream& stuck = *device.create_stream(true);
  Stream& other = *device.create_stream(true);
  std::atomic<bool> open{false};
  stuck.enqueue(task_until([&] { return open.load(); }, &device.doorbell()));
  int polls = 0;
  other.enqueue(TaskPtr(
      new TestTask([&] { return ++polls < 5 ? Task::Progress::kSome : Task::Progress::kDone; })));
  other.synchronize();
  EXPECT_EQ(polls, 5);
  EXPECT_FALSE(stuck.idle());
  open = true;
  stuck.synchronize();
}

TEST(Stream, tells_a_task_that_throws_and_goes_on) {
  Stream& stream = fresh_device().default_stream();
  std::string told;
  auto* task =
      new TestTask([]() -> Task::Progress { throw_error(ErrorCode::kRemote, "peer 3 died"); });
  task->on_fail = [&](const std::string& message) { told = message; };
  stream.enqueue(TaskPtr(task));
  bool ran = false;
  stream.enqueue(task_of([&] { ran = true; }));
  EXPECT_EQ(told, "peer 3 died");
  EXPECT_TRUE(ran);
}

TEST(Stream, fails_a_stuck_task_whose_check_throws) {
  Device& device = fresh_device();
  Stream& stream = device.default_stream();
  std::atomic<bool> failed{false};
  auto* task = new TestTask([] { return Task::Progress::kNone; }, &device.doorbell());
  task->on_check = [] { throw_error(ErrorCode::kRemote, "aborted"); };
  task->on_fail = [&](const std::string&) { failed = true; };
  stream.enqueue(TaskPtr(task));
  stream.synchronize();
  EXPECT_TRUE(failed);
}

TEST(Stream, returns_a_task_to_its_pool_before_it_counts_as_done) {
  Stream& stream = fresh_device().default_stream();
  struct Pooled final : Task {
    bool* back;
    explicit Pooled(bool* b) : back(b) {}
    Progress poll() override { return Progress::kDone; }
    bool fail(const std::exception&) noexcept override { return true; }
    void recycle() noexcept override { *back = true; }
  };
  bool back = false;
  Pooled pooled(&back);
  stream.enqueue(TaskPtr(&pooled));
  EXPECT_TRUE(back);
}

TEST(Stream, finishes_after_it_was_destroyed) {
  Device& device = fresh_device();
  Stream& stream = *device.create_stream(true);
  CUstream_st* handle = Device::handle_of(stream);
  EXPECT_EQ(stream_from_handle(handle, device), &stream);
  std::atomic<bool> open{false};
  std::atomic<bool> ran{false};
  stream.enqueue(task_until([&] { return open.load(); }, &device.doorbell()));
  stream.enqueue(task_of([&] { ran = true; }));
  Device::destroy_stream(Device::handle_of(stream));
  EXPECT_EQ(stream_from_handle(handle, device), nullptr);
  open = true;
  device.synchronize();
  EXPECT_TRUE(ran);
}

TEST(Stream, synchronize_waits_only_for_what_was_enqueued_before) {
  Device& device = fresh_device();
  Stream& stream = *device.create_stream(true);
  std::atomic<bool> first{false};
  std::atomic<bool> second{false};
  stream.enqueue(task_until([&] { return first.load(); }, &device.doorbell()));
  std::atomic<bool> returned{false};
  std::thread waiter([&] {
    stream.synchronize();
    returned = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  stream.enqueue(task_until([&] { return second.load(); }, &device.doorbell()));
  EXPECT_FALSE(returned);
  first = true;
  device.doorbell().ring();
  waiter.join();
  EXPECT_FALSE(stream.idle());
  second = true;
  stream.synchronize();
}

TEST(DefaultStream, waits_for_earlier_work_of_blocking_streams_only) {
  Device& device = fresh_device();
  Stream& blocking = *device.create_stream(false);
  Stream& exempt = *device.create_stream(true);
  std::atomic<bool> open{false};
  std::atomic<bool> exempt_open{false};
  bool default_ran = false;
  bool later_ran = false;
  exempt.enqueue(task_until([&] { return exempt_open.load(); }, &device.doorbell()));
  blocking.enqueue(task_until([&] { return open.load(); }, &device.doorbell()));
  device.default_stream().enqueue(task_of([&] { default_ran = true; }));
  EXPECT_FALSE(default_ran);
  open = true;
  device.default_stream().synchronize();
  EXPECT_TRUE(default_ran);
  EXPECT_FALSE(exempt.idle());

  std::atomic<bool> default_open{false};
  device.default_stream().enqueue(
      task_until([&] { return default_open.load(); }, &device.doorbell()));
  blocking.enqueue(task_of([&] { later_ran = true; }));
  EXPECT_FALSE(later_ran);
  default_open = true;
  blocking.synchronize();
  EXPECT_TRUE(later_ran);
  exempt_open = true;
  device.synchronize();
}

TEST(Stream, copies_and_fills_rows_and_leaves_what_lies_between) {
  Device& device = fresh_device();
  Stream& stream = *device.create_stream(true);
  for (const std::size_t width : {std::size_t{3}, std::size_t{3000}}) {  // in a poll, and on a lane
    const std::size_t height = 50, pitch = width + 5;
    std::vector<std::byte> from(width * height, std::byte{1});
    std::vector<std::byte> to(pitch * height, std::byte{9});
    stream.enqueue_rows(RowCopy{to.data(), pitch, from.data(), width, width, height});
    stream.enqueue_rows(RowFill{to.data(), pitch, 2, 1, height});
    stream.synchronize();
    for (std::size_t i = 0; i < to.size(); ++i) {
      const std::size_t column = i % pitch;
      ASSERT_EQ(static_cast<int>(to[i]), column == 0 ? 2 : column < width ? 1 : 9) << i;
    }
    stream.enqueue_rows(RowCopy{from.data(), width, to.data() + width - 1, pitch, 2, 1});
    std::vector<std::byte> same(from.size());
    stream.enqueue_rows(RowCopy{same.data(), width, from.data(), width, width, height});
    stream.synchronize();
    EXPECT_EQ(from[1], std::byte{9});
    EXPECT_EQ(same, from);
  }
  Device::destroy_stream(Device::handle_of(stream));
}

TEST(Stream, has_a_number_that_no_other_has) {
  Device& device = fresh_device();
  Stream& one = *device.create_stream(true);
  const std::uint64_t id = one.id();
  EXPECT_EQ(one.id(), id);
  EXPECT_NE(device.default_stream().id(), id);
  Device::destroy_stream(Device::handle_of(one));
  Stream& two = *device.create_stream(true);
  EXPECT_NE(two.id(), id);
  Device::destroy_stream(Device::handle_of(two));
}

TEST(InnerStream, outlives_a_reset) {
  Device& device = fresh_device();
  Stream& inner = device.create_inner_stream();
  device.reset();
  std::atomic<int> done{0};
  inner.enqueue_host_function([](void* counter) { ++*static_cast<std::atomic<int>*>(counter); },
                              &done);
  device.retire(inner);
  device.synchronize();
  EXPECT_EQ(done, 1);
}

TEST(StreamHandle, garbage_is_told_apart) {
  Device& device = fresh_device();
  int something = 0;
  EXPECT_EQ(stream_from_handle(nullptr, device), &device.default_stream());
  EXPECT_EQ(stream_from_handle(reinterpret_cast<CUstream_st*>(1), device),
            &device.default_stream());
  auto* const of_this_thread = reinterpret_cast<CUstream_st*>(2);
  Stream* const own = stream_from_handle(of_this_thread, device);
  EXPECT_NE(own, &device.default_stream());
  EXPECT_EQ(&own->device(), &device);
  EXPECT_EQ(stream_from_handle(of_this_thread, device), own);
  EXPECT_EQ(stream_from_handle(reinterpret_cast<CUstream_st*>(3), device), nullptr);
  EXPECT_EQ(stream_from_handle(reinterpret_cast<CUstream_st*>(&something), device), nullptr);
  Stream& stream = *device.create_stream(false);
  auto* handle = Device::handle_of(stream);
  EXPECT_EQ(stream_from_handle(handle + 1, device), nullptr);
  auto* odd = reinterpret_cast<CUstream_st*>(reinterpret_cast<char*>(handle) + 1);
  EXPECT_EQ(stream_from_handle(odd, device), nullptr);
}

// Whichever comes first.
TEST(StreamHandle, the_streams_of_threads_end_with_them_or_with_a_reset) {
  Device& device = fresh_device();
  std::atomic<bool> is_over{false};
  std::thread resets([&] {
    while (!is_over) device.reset();
  });
  for (int i = 0; i < 300; ++i) {
    std::thread([&] { stream_from_handle(reinterpret_cast<CUstream_st*>(2), device); }).join();
  }
  is_over = true;
  resets.join();
}

TEST(StreamHandle, what_is_on_a_threads_stream_goes_on_without_it) {
  Device& device = fresh_device();
  std::atomic<int> done{0};
  const auto count = [](void* counter) { ++*static_cast<std::atomic<int>*>(counter); };
  for (int i = 0; i < 20; ++i) {
    std::thread([&] {
      stream_from_handle(reinterpret_cast<CUstream_st*>(2), device)
          ->enqueue_host_function(count, &done);
    }).join();
  }
  device.synchronize();
  EXPECT_EQ(done, 20);
}

}  // namespace
}  // namespace catenary
