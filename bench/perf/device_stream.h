// The simulated device's streams and events, as resources. Each throws TestFailure when the device
// reports an error.
#pragma once

#include <source_location>
#include <utility>

#include "include/catenary/device.h"
#include "include/nccl.h"

namespace catenary::perf {

void check_device(catError_t result, std::source_location where = std::source_location::current());

// Makes device `ordinal` the calling thread's; where CATENARY_DEVICES says that there are fewer,
// they are shared out in turn. Returns the one it became.
int use_device(int ordinal);

class Stream {
 public:
  // A stream of its own on a device that exists, or the device's default stream.
  Stream(int device, bool use_default);
  Stream(Stream&& other) noexcept
      : device_(other.device_), stream_(std::exchange(other.stream_, nullptr)) {}
  Stream& operator=(Stream&&) = delete;
  ~Stream();

  catStream_t handle() const { return stream_; }
  // The default stream means another one on each device: makes ours the current one.
  void enter_device() const;
  // Waits until all that was enqueued is done.
  void synchronize() const;
  // Whether it is; never waits.
  bool idle() const;

 private:
  int device_;
  catStream_t stream_ = nullptr;
};

class Event {
 public:
  Event();
  Event(Event&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
  Event& operator=(Event&&) = delete;
  ~Event();

  void record(const Stream& stream) const;
  // Both must have been reached.
  double microseconds_since(const Event& earlier) const;

 private:
  catEvent_t event_ = nullptr;
};

}  // namespace catenary::perf
