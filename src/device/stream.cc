#include "src/device/stream.h"

#include "src/device/device.h"
#include "src/device/event.h"
#include "src/device/operations.h"

namespace catenary {
namespace {

constinit std::atomic<std::uint64_t> next_id{1};

}  // namespace

Stream::Stream(Device& device, Kind kind) noexcept
    : device_(device), kind_(kind), id_(next_id.fetch_add(1, std::memory_order_relaxed)) {}

Stream::~Stream() = default;

void Stream::enqueue(TaskPtr&& task, Extent extent) {
  device_.executor().submit(*this, std::move(task), extent);
}

void Stream::record(Event& event) {
  auto point = std::make_shared<EventPoint>(device_);
  enqueue(make_record_task(point));
  event.set_point(std::move(point));
}

void Stream::wait_event(const Event& event) {
  std::shared_ptr<EventPoint> point = event.point();
  if (point == nullptr || point->done.load(std::memory_order_acquire)) return;
  enqueue(make_wait_task(std::move(point)));
}

void Stream::enqueue_host_function(HostFunction function, void* data) {
  enqueue(make_host_function_task(device_, function, data));
}

void Stream::enqueue_copy(void* to, const void* from, std::size_t bytes) {
  enqueue(make_copy_task(device_, to, from, bytes));
}

void Stream::enqueue_fill(void* to, int value, std::size_t bytes) {
  enqueue(make_fill_task(device_, to, value, bytes));
}

void Stream::enqueue_rows(const RowCopy& rows) { enqueue(make_rows_task(device_, rows)); }

void Stream::enqueue_rows(const RowFill& rows) { enqueue(make_rows_task(device_, rows)); }

bool Stream::query() {
  device_.executor().note_return();
  if (!idle()) device_.executor().visit();
  return idle();
}

void Stream::synchronize() {
  const std::uint64_t target = accepted();
  drive_until(device_,
              [this, target] { return finished_.load(std::memory_order_acquire) >= target; });
}

}  // namespace catenary
