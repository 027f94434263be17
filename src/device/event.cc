#include "src/device/event.h"

#include "src/device/device.h"
#include "src/device/device_error.h"

namespace catenary {
namespace {

bool is_done(const EventPoint& point) { return point.done.load(std::memory_order_acquire); }

}  // namespace

std::shared_ptr<EventPoint> Event::point() const {
  const std::lock_guard lock(mutex_);
  return point_;
}

void Event::set_point(std::shared_ptr<EventPoint> point) {
  const std::lock_guard lock(mutex_);
  point_.swap(point);
}

bool Event::query() const {
  const std::shared_ptr<EventPoint> now = point();
  if (now == nullptr) return true;
  now->device.executor().note_return();
  if (is_done(*now)) return true;
  now->device.executor().visit();
  return is_done(*now);
}

void Event::synchronize() const {
  const std::shared_ptr<EventPoint> now = point();
  if (now == nullptr) return;
  now->device.executor().note_return();
  if (is_done(*now)) return;
  drive_until(now->device, [&now] { return is_done(*now); });
}

float Event::elapsed_ms(const Event& start, const Event& stop) {
  const std::shared_ptr<EventPoint> from = start.point();
  const std::shared_ptr<EventPoint> to = stop.point();
  if (!start.timing_ || !stop.timing_) {
    throw DeviceError(DeviceStatus::kInvalidResourceHandle,
                      "elapsed time of an event that was created with timing disabled");
  }
  if (from == nullptr || to == nullptr) {
    throw DeviceError(DeviceStatus::kInvalidResourceHandle,
                      "elapsed time of an event that was never recorded");
  }
  if (!is_done(*from) || !is_done(*to)) {
    throw DeviceError(DeviceStatus::kNotReady, "elapsed time of an event that is still to come");
  }
  return static_cast<float>(static_cast<double>(to->time_ns - from->time_ns) * 1e-6);
}

}  // namespace catenary
