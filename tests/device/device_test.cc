#include "src/device/device.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "src/device/device_error.h"
#include "src/device/handles.h"
#include "src/device/memory.h"
#include "tests/device/test_task.h"

namespace catenary {
namespace {

using testing::task_until;

DeviceStatus status_of_choosing(int ordinal) {
  try {
    Device::set_current(ordinal);
  } catch (const DeviceError& error) {
    return error.status();
  }
  return DeviceStatus{};
}

TEST(Device, is_made_when_first_asked_for) {
  Device& device = Device::get(5);
  EXPECT_EQ(&Device::get(5), &device);
  EXPECT_EQ(device.ordinal(), 5);
  EXPECT_EQ(device.default_stream().kind(), Stream::Kind::kDefault);
}

TEST(Device, can_be_had_beyond_the_number_of_cores) {
  EXPECT_GE(Device::count(), 1);
  EXPECT_EQ(status_of_choosing(1023), DeviceStatus{});
  EXPECT_EQ(status_of_choosing(1024), DeviceStatus::kInvalidDevice);
  EXPECT_EQ(status_of_choosing(-1), DeviceStatus::kInvalidDevice);
  EXPECT_EQ(Device::current_ordinal(), 1023);
  Device::set_current(0);
}

TEST(Device, is_chosen_by_each_thread_for_itself) {
  Device::set_current(3);
  int other = -1;
  std::thread([&] { other = Device::current_ordinal(); }).join();
  EXPECT_EQ(other, 0);
  EXPECT_EQ(Device::current_ordinal(), 3);
  Device::set_current(0);
}

TEST(Device, synchronize_waits_for_every_stream) {
  Device& device = Device::get(6);
  Stream& one = *device.create_stream(true);
  Stream& two = *device.create_stream(false);
  std::atomic<int> polls{0};
  for (Stream* stream : {&one, &two, &device.default_stream()}) {
    stream->enqueue(TaskPtr(new testing::TestTask(
        [&] { return ++polls > 30 ? Task::Progress::kDone : Task::Progress::kSome; })));
  }
  device.synchronize();
  EXPECT_TRUE(one.idle());
  EXPECT_TRUE(two.idle());
  EXPECT_TRUE(device.default_stream().idle());
}

TEST(Device, waits_for_what_the_default_stream_would_wait_for) {
  Device& device = Device::get(7);
  Stream& blocking = *device.create_stream(false);
  Stream& exempt = *device.create_stream(true);
  std::atomic<bool> open{false};
  std::atomic<int> polls{0};
  exempt.enqueue(task_until([&] { return open.load(); }));
  blocking.enqueue(task_until([&] { return ++polls > 20; }));
  device.wait_for_default_stream();
  EXPECT_TRUE(blocking.idle());
  EXPECT_FALSE(exempt.idle());
  open = true;
  device.synchronize();
}

TEST(Device, reset_takes_streams_and_memory_back) {
  Device& device = Device::get(8);
  CUstream_st* handle = Device::handle_of(*device.create_stream(false));
  std::byte* mine = Memory::process().allocate(100, MemoryKind::kDevice, 8);
  std::byte* other = Memory::process().allocate(100, MemoryKind::kDevice, 9);
  device.reset();
  EXPECT_EQ(stream_from_handle(handle, device), nullptr);
  EXPECT_FALSE(Memory::process().find(mine));
  EXPECT_TRUE(Memory::process().find(other));
  Memory::process().free(other, MemoryKind::kDevice);
}

TEST(Device, keeps_notes_of_its_own_until_reset) {
  Device& device = Device::get(11);
  EXPECT_EQ(device.note(3).load(), 0u);
  device.note(3) = 7;
  EXPECT_EQ(device.note(3).load(), 7u);
  EXPECT_EQ(device.note(4).load(), 0u);
  EXPECT_EQ(Device::get(12).note(3).load(), 0u);
  device.reset();
  EXPECT_EQ(device.note(3).load(), 0u);
}

TEST(Device, refuses_to_destroy_a_stream_twice) {
  Device& device = Device::get(10);
  EXPECT_FALSE(Device::destroy_stream(Device::handle_of(device.default_stream())));
}

}  // namespace
}  // namespace catenary
