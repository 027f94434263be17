// Event: a point in a stream's work that others can ask for and wait for.
//
// Each record makes a new EventPoint; what waits holds on to the point that was current when it
// began to wait, so an event may be recorded anew at any time. An event never recorded counts as
// done. Threads: any. Waiting: synchronize() only, and it drives. Failure: elapsed_ms throws
// DeviceError.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

namespace catenary {

class Device;

struct EventPoint {
  explicit EventPoint(Device& recorded_on) noexcept : device(recorded_on) {}

  Device& device;
  std::int64_t time_ns = 0;  // valid once done
  std::atomic<bool> done{false};
};

class Event {
 public:
  explicit Event(bool timing) noexcept : timing_(timing) {}

  std::shared_ptr<EventPoint> point() const;
  void set_point(std::shared_ptr<EventPoint> point);

  // Whether it is done, after an attempt to get on with it.
  bool query() const;
  // Waits until the point that is current now is done.
  void synchronize() const;

  // Milliseconds from `start` to `stop`. Throws kNotReady while one is not done, and
  // kInvalidResourceHandle if one was made without timing or never recorded.
  static float elapsed_ms(const Event& start, const Event& stop);

 private:
  const bool timing_;
  mutable std::mutex mutex_;
  std::shared_ptr<EventPoint> point_;
};

}  // namespace catenary
