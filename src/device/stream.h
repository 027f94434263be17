// Stream: work that runs in order.
//
// Streams of a device are independent of each other, but for the rule of the default stream: its
// work waits for all earlier work of the device's blocking streams, and their later work waits for
// it. Streams made non-blocking are exempt.
//
// Threads: any. Only synchronize() waits, and it drives. Owner: the device; a destroyed stream
// lives on until its work is done. Failure: enqueueing throws if memory runs out.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "src/device/counter.h"
#include "src/device/ring_queue.h"
#include "src/device/rows.h"
#include "src/device/task.h"

struct CUstream_st;

namespace catenary {

class Device;
class Event;
class Executor;

class Stream {
 public:
  enum class Kind : std::uint8_t { kDefault, kBlocking, kNonBlocking };
  using HostFunction = void (*)(void* data);

  Stream(Device& device, Kind kind) noexcept;
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  Device& device() const noexcept { return device_; }
  Kind kind() const noexcept { return kind_; }
  // What no other stream of the process ever has, before or after.
  std::uint64_t id() const noexcept { return id_; }

  // Appends a task, and tries at once what can be done without waiting, unless it is long and the
  // caller is likely to go away (absences.h). If this throws, the task is the caller's still.
  void enqueue(TaskPtr&& task, Extent extent = Extent::kShort);

  // The event now stands for what is enqueued up to here.
  void record(Event& event);
  // What is enqueued from here on waits for what the event stands for now; on any device.
  void wait_event(const Event& event);
  // Calls function(data) on the device's compute lane, in order with the other work here.
  void enqueue_host_function(HostFunction function, void* data);
  // Like memmove and memset, in order; the memory must stay valid until done.
  void enqueue_copy(void* to, const void* from, std::size_t bytes);
  void enqueue_fill(void* to, int value, std::size_t bytes);
  void enqueue_rows(const RowCopy& rows);
  void enqueue_rows(const RowFill& rows);

  // Whether all that was enqueued is done.
  bool idle() const noexcept {
    const std::uint64_t finished = finished_.load(std::memory_order_acquire);
    return finished == accepted();
  }
  // The same, after an attempt to get on with it: programs ask this in a loop.
  bool query();
  // Waits until all that is enqueued now is done.
  void synchronize();

 private:
  friend class Executor;
  friend class Device;
  struct Item {
    TaskPtr task;
    std::uint64_t order;  // among all tasks of the device
    bool is_handed_over;  // to its thread
  };

  Device& device_;
  const Kind kind_;
  const std::uint64_t id_;
  CUstream_st* handle_ = nullptr;  // null for the default stream and inner ones
  RingQueue<Item> items_;          // under the drive lock

  // Tasks ever enqueued: two counts, each written under a lock of its own and never falling, so
  // that the usual way needs no further atomic operation; and tasks ever done, under the drive
  // lock.
  std::uint64_t accepted() const noexcept {
    return direct_.load(std::memory_order_acquire) + inboxed_.load(std::memory_order_acquire);
  }
  Counter direct_{0};
  Counter inboxed_{0};
  Counter finished_{0};
};

}  // namespace catenary
