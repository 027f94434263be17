#include "src/device/operations.h"

#include <cstring>

#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/log.h"
#include "src/device/device.h"

namespace catenary {
namespace {

class RecordTask final : public Task {
 public:
  explicit RecordTask(std::shared_ptr<EventPoint> point) : point_(std::move(point)) {}
  Progress poll() override {
    point_->time_ns = now_ns();
    point_->done.store(true, std::memory_order_release);
    return Progress::kDone;
  }
  bool fail(const std::exception&) noexcept override { return true; }

 private:
  const std::shared_ptr<EventPoint> point_;
};

class WaitTask final : public Task {
 public:
  explicit WaitTask(std::shared_ptr<EventPoint> point) : point_(std::move(point)) {}
  Progress poll() override {
    return point_->done.load(std::memory_order_acquire) ? Progress::kDone : Progress::kNone;
  }
  bool fail(const std::exception&) noexcept override { return true; }
  // Whoever drives the device that records rings its doorbell after each thing done.
  Wakers wakers() override { return {.bells = {&bell_, 1}, .descriptors = {}, .are_all = true}; }

 private:
  const std::shared_ptr<EventPoint> point_;
  Doorbell* const bell_ = &point_->device.doorbell();
};

// Hands itself to a lane at the first poll, and is done when the lane is.
class LaneTask : public Task, public Job {
 public:
  LaneTask(Device& device, Lane& lane) : device_(device), lane_(lane) {}
  Progress poll() override {
    if (!handed_over_) {
      lane_.run(*this);
      handed_over_ = true;
      return Progress::kSome;
    }
    return finished() ? Progress::kDone : Progress::kNone;
  }
  bool fail(const std::exception& error) noexcept override {
    CATENARY_WARN(
        format("device %d: an operation was dropped: %s", device_.ordinal(), error.what()));
    return true;
  }
  Wakers wakers() override { return {.bells = {&bell_, 1}, .descriptors = {}, .are_all = true}; }

 private:
  Device& device_;
  Doorbell* const bell_ = &device_.doorbell();
  Lane& lane_;
  bool handed_over_ = false;
};

class HostFunctionTask final : public LaneTask {
 public:
  HostFunctionTask(Device& device, Stream::HostFunction function, void* data)
      : LaneTask(device, device.compute_lane()), function_(function), data_(data) {}
  void execute() override { function_(data_); }

 private:
  const Stream::HostFunction function_;
  void* const data_;
};

// Small ones are done in the poll itself.
class MemoryTask : public LaneTask {
 public:
  MemoryTask(Device& device, std::size_t bytes)
      : LaneTask(device, device.copy_lane()), bytes_(bytes) {}
  Progress poll() final {
    if (bytes_ > kMostPolledBytes) return LaneTask::poll();
    execute();
    return Progress::kDone;
  }

 protected:
  const std::size_t bytes_;
};

class CopyTask final : public MemoryTask {
 public:
  CopyTask(Device& device, void* to, const void* from, std::size_t bytes)
      : MemoryTask(device, bytes), to_(to), from_(from) {}
  void execute() override { std::memmove(to_, from_, bytes_); }

 private:
  void* const to_;
  const void* const from_;
};

class FillTask final : public MemoryTask {
 public:
  FillTask(Device& device, void* to, int value, std::size_t bytes)
      : MemoryTask(device, bytes), to_(to), value_(value) {}
  void execute() override { std::memset(to_, value_, bytes_); }

 private:
  void* const to_;
  const int value_;
};

template <typename Rows>
class RowsTask final : public MemoryTask {
 public:
  RowsTask(Device& device, const Rows& rows) : MemoryTask(device, rows.bytes()), rows_(rows) {}
  void execute() override { rows_.run(); }

 private:
  const Rows rows_;
};

}  // namespace

TaskPtr make_record_task(std::shared_ptr<EventPoint> point) {
  return TaskPtr(new RecordTask(std::move(point)));
}

TaskPtr make_wait_task(std::shared_ptr<EventPoint> point) {
  return TaskPtr(new WaitTask(std::move(point)));
}

TaskPtr make_host_function_task(Device& device, Stream::HostFunction function, void* data) {
  return TaskPtr(new HostFunctionTask(device, function, data));
}

TaskPtr make_copy_task(Device& device, void* to, const void* from, std::size_t bytes) {
  return TaskPtr(new CopyTask(device, to, from, bytes));
}

TaskPtr make_fill_task(Device& device, void* to, int value, std::size_t bytes) {
  return TaskPtr(new FillTask(device, to, value, bytes));
}

TaskPtr make_rows_task(Device& device, const RowCopy& rows) {
  return TaskPtr(new RowsTask(device, rows));
}

TaskPtr make_rows_task(Device& device, const RowFill& rows) {
  return TaskPtr(new RowsTask(device, rows));
}

}  // namespace catenary
