#include "src/device/device.h"

#include <algorithm>
#include <atomic>

#include "src/base/config.h"
#include "src/device/device_error.h"
#include "src/device/event.h"
#include "src/device/handles.h"
#include "src/device/memory.h"
#include "src/device/operations.h"
#include "src/device/process_life.h"
#include "src/topology/machine.h"

namespace catenary {
namespace {

constexpr int kMostOnDemand = 1024;  // devices, when CATENARY_DEVICES does not limit them

thread_local int current_device = 0;

int device_limit() {
  static const int limit =
      Config::process().devices > 0 ? static_cast<int>(Config::process().devices) : kMostOnDemand;
  return limit;
}

void check_ordinal(int ordinal) {
  if (ordinal >= 0 && ordinal < device_limit()) return;
  const bool is_told = Config::process().devices > 0;
  throw DeviceError(
      DeviceStatus::kInvalidDevice,
      format(is_told ? "device %d does not exist: CATENARY_DEVICES says that there are %d"
                     : "device %d does not exist: no more than %d are made (see CATENARY_DEVICES)",
             ordinal, device_limit()));
}

constinit std::atomic<Device*> devices[kMostDevices] = {};
constinit std::mutex making;

Device& make_device(int ordinal) {
  watch_process();
  const std::lock_guard lock(making);
  Device* device = devices[ordinal].load();
  if (device != nullptr) return *device;
  device = new Device(ordinal);  // immortal: its threads run until the process ends
  add_executor(device->executor());
  devices[ordinal].store(device);
  return *device;
}

}  // namespace

// The last task of a stream: hands it over to be freed.
class RetireTask final : public Task {
 public:
  explicit RetireTask(Stream& stream) : stream_(stream) {}
  Progress poll() override {
    Device& device = stream_.device();
    device.executor().retire(device.forget(stream_));
    return Progress::kDone;
  }
  bool fail(const std::exception&) noexcept override { return true; }

 private:
  Stream& stream_;
};

Device& Device::get(int ordinal) {
  require_not_forked();
  check_ordinal(ordinal);
  Device* device = devices[ordinal].load(std::memory_order_acquire);
  return device != nullptr ? *device : make_device(ordinal);
}

int Device::current_ordinal() noexcept { return current_device; }

void Device::set_current(int ordinal) {
  get(ordinal);
  current_device = ordinal;
}

int Device::count() {
  static const int cores = usable_cores();
  return Config::process().devices > 0 ? static_cast<int>(Config::process().devices) : cores;
}

Device::Device(int ordinal)
    : executor_(ordinal),
      compute_lane_(format("catenary-cmp%d", ordinal % 1000), executor_),
      copy_lane_(format("catenary-cpy%d", ordinal % 1000), executor_) {}

std::shared_ptr<Stream> Device::create_stream(bool non_blocking) {
  auto stream = std::make_shared<Stream>(
      *this, non_blocking ? Stream::Kind::kNonBlocking : Stream::Kind::kBlocking);
  stream->handle_ = stream_handles().insert(*stream);
  keep(stream);
  return stream;
}

Stream& Device::create_inner_stream() {
  const auto stream = std::make_shared<Stream>(*this, Stream::Kind::kNonBlocking);
  keep(stream);
  return *stream;
}

void Device::keep(std::shared_ptr<Stream> stream) {
  const std::lock_guard lock(streams_mutex_);
  streams_.push_back(std::move(stream));
}

bool Device::destroy_stream(CUstream_st* handle) {
  Stream* const stream = stream_handles().remove(handle);
  if (stream == nullptr) return false;
  stream->device().retire(*stream);
  return true;
}

void Device::retire(Stream& stream) {
  std::shared_ptr<Stream> kept;  // until the last task is safely enqueued
  {
    const std::lock_guard lock(streams_mutex_);
    const auto is_it = [&](const auto& entry) { return entry.get() == &stream; };
    kept = *std::find_if(streams_.begin(), streams_.end(), is_it);
  }
  kept->enqueue(TaskPtr(new RetireTask(stream)));
}

std::shared_ptr<Stream> Device::forget(const Stream& stream) {
  const std::lock_guard lock(streams_mutex_);
  const auto is_it = [&](const auto& entry) { return entry.get() == &stream; };
  const auto found = std::find_if(streams_.begin(), streams_.end(), is_it);
  std::shared_ptr<Stream> forgotten = std::move(*found);
  streams_.erase(found);
  return forgotten;
}

void Device::synchronize() {
  require_not_forked();
  struct Target {
    std::shared_ptr<Stream> stream;
    std::uint64_t count;
  };
  std::vector<Target> targets;
  {
    const std::lock_guard lock(streams_mutex_);
    for (const auto& stream : streams_) {
      if (!stream->idle()) targets.push_back({stream, stream->accepted()});
    }
  }
  default_stream_.synchronize();
  drive_until(*this, [&targets] {
    return std::all_of(targets.begin(), targets.end(), [](const Target& target) {
      return target.stream->finished_.load(std::memory_order_acquire) >= target.count;
    });
  });
}

void Device::wait_for_default_stream() {
  executor_.note_return();
  if (!executor_.pending()) return;
  const auto point = std::make_shared<EventPoint>(*this);
  default_stream_.enqueue(make_record_task(point));
  drive_until(*this, [&point] { return point->done.load(std::memory_order_acquire); });
}

void Device::reset() {
  synchronize();
  std::vector<std::shared_ptr<Stream>> streams;
  {
    const std::lock_guard lock(streams_mutex_);
    streams = streams_;
  }
  for (const auto& stream : streams) {
    if (stream_handles().find(stream->handle_) == stream.get()) destroy_stream(stream->handle_);
  }
  Memory::process().free_all(ordinal());
  for (auto& note : notes_) note.store(0);
}

namespace {

constexpr std::uintptr_t kPerThread = 2;  // cudaStreamPerThread

// A thread's own streams, one of each device that it asked for one.
class ThreadStreams {
 public:
  ThreadStreams() = default;
  ThreadStreams(const ThreadStreams&) = delete;
  ~ThreadStreams() {
    are_over = true;
    if (is_forked() || process_exiting()) return;
    for (const Own& own : streams_) Device::destroy_stream(own.handle);
  }

  // By handle, since a reset of the device ends its streams, also while we look.
  Stream* of(Device& device) {
    std::erase_if(streams_, [](const Own& own) { return !stream_handles().find(own.handle); });
    for (const Own& own : streams_) {
      if (own.device != &device) continue;
      if (Stream* const stream = stream_handles().find(own.handle)) return stream;
    }
    streams_.reserve(streams_.size() + 1);
    const std::shared_ptr<Stream> made = device.create_stream(false);
    streams_.push_back({&device, Device::handle_of(*made)});
    return made.get();
  }

  // What still runs in a thread after its streams ended has the default stream.
  static thread_local constinit bool are_over;

 private:
  struct Own {
    Device* device;
    CUstream_st* handle;
  };
  std::vector<Own> streams_;
};
thread_local constinit bool ThreadStreams::are_over = false;
thread_local ThreadStreams own_streams;

// For which CUDA has names. (Out of line, as is all that the shortest operations pass by: what it
// takes to be called would be paid by them.)
[[gnu::noinline]] Stream* named_stream(const CUstream_st* name, Device& device) {
  if (is_default_stream(name) || ThreadStreams::are_over) return &device.default_stream();
  return own_streams.of(device);
}

}  // namespace

HandleTable<CUstream_st, Stream>& stream_handles() {
  static auto& table = *new HandleTable<CUstream_st, Stream>;
  return table;
}

HandleTable<CUevent_st, Event>& event_handles() {
  static auto& table = *new HandleTable<CUevent_st, Event>;
  return table;
}

Stream* stream_from_handle(CUstream_st* handle, Device& device_for_null) {
  if (reinterpret_cast<std::uintptr_t>(handle) > kPerThread) return stream_handles().find(handle);
  return named_stream(handle, device_for_null);
}

}  // namespace catenary
