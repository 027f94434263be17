#include "src/device/event.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "src/device/device.h"
#include "src/device/device_error.h"
#include "tests/device/test_task.h"

namespace catenary {
namespace {

using namespace std::chrono_literals;
using testing::task_of;
using testing::task_until;

Device& fresh_device() {
  static int next = 0;
  return Device::get(next++);
}

DeviceStatus status_of_elapsed(const Event& start, const Event& stop) {
  try {
    Event::elapsed_ms(start, stop);
  } catch (const DeviceError& error) {
    return error.status();
  }
  return DeviceStatus{};
}

TEST(Event, counts_as_done_before_it_is_recorded) {
  Event event(true);
  EXPECT_TRUE(event.query());
  event.synchronize();
  fresh_device().default_stream().wait_event(event);
  EXPECT_EQ(status_of_elapsed(event, event), DeviceStatus::kInvalidResourceHandle);
}

TEST(Event, stands_for_the_work_before_it) {
  Device& device = fresh_device();
  Stream& stream = *device.create_stream(true);
  std::atomic<bool> first{false};
  std::atomic<bool> second{false};
  Event event(true);
  stream.enqueue(task_until([&] { return first.load(); }, &device.doorbell()));
  stream.record(event);
  stream.enqueue(task_until([&] { return second.load(); }, &device.doorbell()));
  EXPECT_FALSE(event.query());
  first = true;
  event.synchronize();
  EXPECT_TRUE(event.query());
  EXPECT_FALSE(stream.idle());
  second = true;
  stream.synchronize();
}

TEST(Event, orders_streams_of_different_devices) {
  Device& before = fresh_device();
  Device& after = fresh_device();
  std::atomic<bool> open{false};
  std::atomic<bool> ran{false};
  Event event(false);
  before.default_stream().enqueue(task_until([&] { return open.load(); }, &before.doorbell()));
  before.default_stream().record(event);
  after.default_stream().wait_event(event);
  after.default_stream().enqueue(task_of([&] { ran = true; }));
  EXPECT_FALSE(ran);
  std::thread opener([&] {
    std::this_thread::sleep_for(5ms);
    open = true;
    before.doorbell().ring();
  });
  after.default_stream().synchronize();
  EXPECT_TRUE(ran);
  opener.join();
}

TEST(Event, keeps_the_old_point_for_those_who_wait_already) {
  Device& device = fresh_device();
  Stream& stream = *device.create_stream(true);
  Stream& waiting = *device.create_stream(true);
  std::atomic<bool> first{false};
  std::atomic<bool> second{false};
  Event event(false);
  stream.enqueue(task_until([&] { return first.load(); }, &device.doorbell()));
  stream.record(event);
  waiting.wait_event(event);
  stream.enqueue(task_until([&] { return second.load(); }, &device.doorbell()));
  stream.record(event);
  first = true;
  waiting.synchronize();
  EXPECT_FALSE(event.query());
  second = true;
  event.synchronize();
}

TEST(Event, measures_the_time_between_two) {
  Device& device = fresh_device();
  Event start(true);
  Event stop(true);
  device.default_stream().record(start);
  std::atomic<bool> looked{false};
  device.default_stream().enqueue_host_function(
      [](void* flag) {
        while (!static_cast<std::atomic<bool>*>(flag)->load()) std::this_thread::yield();
        std::this_thread::sleep_for(20ms);
      },
      &looked);
  device.default_stream().record(stop);
  EXPECT_EQ(status_of_elapsed(start, stop), DeviceStatus::kNotReady);
  looked = true;
  stop.synchronize();
  EXPECT_GE(Event::elapsed_ms(start, stop), 19.f);
  EXPECT_LT(Event::elapsed_ms(start, stop), 5000.f);
  Event untimed(false);
  device.default_stream().record(untimed);
  EXPECT_EQ(status_of_elapsed(start, untimed), DeviceStatus::kInvalidResourceHandle);
}

}  // namespace
}  // namespace catenary
