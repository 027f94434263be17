// The C boundary of include/catenary/device.h: unpacks handles, calls, and turns what is thrown
// into a code. No exception leaves; the text of an error stays with the thread and goes to the log.

#include "catenary/device.h"

#include <cstring>
#include <new>
#include <type_traits>
#include <utility>

#include "src/base/error.h"
#include "src/base/log.h"
#include "src/base/thread_text.h"
#include "src/device/device.h"
#include "src/device/device_error.h"
#include "src/device/event.h"
#include "src/device/handles.h"
#include "src/device/memory.h"
#include "src/device/process_life.h"
#include "src/device/properties.h"
#include "src/device/rows.h"

namespace catenary {
namespace {

thread_local catError_t last_error = catSuccess;
thread_local ThreadText<512> last_message;
thread_local unsigned long long thread_note = 0;
static_assert(Device::kNotes == CATENARY_DEVICE_NOTES);

catError_t keep(catError_t error, const char* message) noexcept {
  last_error = error;
  CATENARY_WARN(last_message.keep(message));
  return error;
}

catError_t code_of(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::kSystem: return catErrorOperatingSystem;
    case ErrorCode::kInvalidArgument: return catErrorInvalidValue;
    case ErrorCode::kInvalidUsage: return catErrorInitializationError;
    case ErrorCode::kUnhandledDevice:
    case ErrorCode::kInternal:
    case ErrorCode::kRemote:
    case ErrorCode::kTimeout: return catErrorUnknown;
  }
  return catErrorUnknown;
}

// The one translator. A body that returns a catError_t answers with it.
template <typename Body>
catError_t guarded(const Body& body) noexcept {
  try {
    require_not_forked();
    if constexpr (std::is_same_v<std::invoke_result_t<Body>, catError_t>) {
      return body();
    } else {
      body();
      return catSuccess;
    }
  } catch (const DeviceError& error) {
    if (error.status() == DeviceStatus::kNotReady) return catErrorNotReady;
    return keep(static_cast<catError_t>(error.status()), error.what());
  } catch (const Error& error) {
    return keep(code_of(error.code()), error.what());
  } catch (const std::bad_alloc&) {
    return keep(catErrorMemoryAllocation, "the process has no memory left");
  } catch (const std::exception& error) {
    return keep(catErrorUnknown, error.what());
  }
}

void require(bool condition, const char* message) {
  if (!condition) throw DeviceError(DeviceStatus::kInvalidValue, message);
}

Stream& to_stream(catStream_t handle) {
  if (is_default_stream(handle)) return Device::current().default_stream();
  require_not_forked();
  if (Stream* stream = stream_from_handle(handle, Device::current())) return *stream;
  throw DeviceError(DeviceStatus::kInvalidResourceHandle,
                    "the stream does not exist, or was destroyed already");
}

Event& to_event(catEvent_t handle) {
  Event* event = handle != nullptr ? event_handles().find(handle) : nullptr;
  if (event != nullptr) return *event;
  throw DeviceError(DeviceStatus::kInvalidResourceHandle,
                    "the event does not exist, or was destroyed already");
}

void check_range(const void* memory, std::size_t bytes) {
  require(memory != nullptr || bytes == 0, "a memory address is null");
}

std::size_t checked_bytes(std::size_t pitch, std::size_t width, std::size_t height) {
  require(pitch >= width, "a pitch is less than the width of a row");
  std::size_t bytes = 0;
  require(!__builtin_mul_overflow(pitch, height, &bytes), "rows reach beyond all memory");
  return width == 0 ? 0 : bytes;
}

RowCopy rows_to_copy(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                     std::size_t width, std::size_t height) {
  check_range(to, checked_bytes(to_pitch, width, height));
  check_range(from, checked_bytes(from_pitch, width, height));
  return {static_cast<std::byte*>(to),
          to_pitch,
          static_cast<const std::byte*>(from),
          from_pitch,
          width,
          height};
}

RowFill rows_to_fill(void* to, std::size_t pitch, int value, std::size_t width,
                     std::size_t height) {
  check_range(to, checked_bytes(pitch, width, height));
  return {static_cast<std::byte*>(to), pitch, value, width, height};
}

std::atomic<std::uint64_t>& note_of(int device, int place) {
  require(place >= 0 && place < CATENARY_DEVICE_NOTES, "a device has no such note");
  return Device::get(device).note(static_cast<std::size_t>(place));
}

void* allocate(std::size_t bytes, MemoryKind kind) {
  if (bytes == 0) return nullptr;
  return Memory::process().allocate(bytes, kind, Device::current().ordinal());
}

void release(void* memory, MemoryKind kind) {
  if (memory == nullptr) return;
  const std::optional<MemoryBlock> block = Memory::process().find(memory);
  if (block && block->base == memory && block->kind == kind)
    Device::get(block->device).synchronize();
  Memory::process().free(memory, kind);
}

}  // namespace
}  // namespace catenary

using namespace catenary;

catError_t catGetLastError(void) {
  const catError_t error = last_error;
  last_error = catSuccess;
  return error;
}

catError_t catPeekAtLastError(void) { return last_error; }

catError_t catSetLastError(catError_t error) { return last_error = error; }

const char* catGetLastErrorMessage(void) { return last_message.get(); }

const char* catGetErrorString(catError_t error) {
  switch (error) {
    case catSuccess: return "no error";
    case catErrorInvalidValue: return "invalid argument";
    case catErrorMemoryAllocation: return "out of memory";
    case catErrorInitializationError: return "initialization error";
    case catErrorNoDevice: return "there is no device";
    case catErrorInvalidDevice: return "invalid device ordinal";
    case catErrorOperatingSystem: return "a call of the operating system failed";
    case catErrorInvalidResourceHandle: return "invalid resource handle";
    case catErrorNotReady: return "device not ready";
    case catErrorNotPermitted: return "operation not permitted";
    case catErrorNotSupported: return "operation not supported on host memory";
    case catErrorUnknown: return "unknown error";
  }
  return "unrecognized error code";
}

const char* catGetErrorName(catError_t error) {
  switch (error) {
    case catSuccess: return "catSuccess";
    case catErrorInvalidValue: return "catErrorInvalidValue";
    case catErrorMemoryAllocation: return "catErrorMemoryAllocation";
    case catErrorInitializationError: return "catErrorInitializationError";
    case catErrorNoDevice: return "catErrorNoDevice";
    case catErrorInvalidDevice: return "catErrorInvalidDevice";
    case catErrorOperatingSystem: return "catErrorOperatingSystem";
    case catErrorInvalidResourceHandle: return "catErrorInvalidResourceHandle";
    case catErrorNotReady: return "catErrorNotReady";
    case catErrorNotPermitted: return "catErrorNotPermitted";
    case catErrorNotSupported: return "catErrorNotSupported";
    case catErrorUnknown: return "catErrorUnknown";
  }
  return "unrecognized error code";
}

catError_t catGetDeviceCount(int* count) {
  return guarded([&] {
    require(count != nullptr, "count is null");
    *count = Device::count();
  });
}

catError_t catSetDevice(int device) {
  return guarded([&] { Device::set_current(device); });
}

catError_t catGetDevice(int* device) {
  return guarded([&] {
    require(device != nullptr, "device is null");
    *device = Device::current_ordinal();
  });
}

catError_t catGetDeviceProperties(catDeviceProperties* properties, int device) {
  return guarded([&] {
    require(properties != nullptr, "properties is null");
    const int ordinal = Device::get(device).ordinal();
    const SharedResources shared = shared_resources();
    const PciAddress pci = pci_address(ordinal);
    *properties = {};
    std::memcpy(properties->name, kDeviceName, sizeof kDeviceName);
    properties->totalGlobalMem = shared.total_bytes;
    properties->pciDomainID = pci.domain;
    properties->pciBusID = pci.bus;
    properties->pciDeviceID = pci.device;
    properties->multiProcessorCount = shared.cores;
  });
}

catError_t catDeviceSynchronize(void) {
  return guarded([] { Device::current().synchronize(); });
}

catError_t catDeviceReset(void) {
  return guarded([] { Device::current().reset(); });
}

catError_t catDeviceSetNote(int device, int place, unsigned long long value) {
  return guarded([&] { note_of(device, place).store(value); });
}

catError_t catDeviceGetNote(unsigned long long* value, int device, int place) {
  return guarded([&] {
    require(value != nullptr, "value is null");
    *value = note_of(device, place).load();
  });
}

catError_t catThreadExchangeNote(unsigned long long* value) {
  return guarded([&] {
    require(value != nullptr, "value is null");
    std::swap(*value, thread_note);
  });
}

catError_t catStreamCreate(catStream_t* stream) {
  return catStreamCreateWithFlags(stream, catStreamDefault);
}

catError_t catStreamCreateWithFlags(catStream_t* stream, unsigned int flags) {
  return guarded([&] {
    require(stream != nullptr, "stream is null");
    require((flags & ~catStreamNonBlocking) == 0, "unknown stream flags");
    *stream = Device::handle_of(*Device::current().create_stream(flags == catStreamNonBlocking));
  });
}

catError_t catStreamDestroy(catStream_t stream) {
  return guarded([&] {
    if (Device::destroy_stream(stream)) return;
    throw DeviceError(DeviceStatus::kInvalidResourceHandle,
                      "the stream does not exist, was destroyed already, or is not the caller's");
  });
}

catError_t catStreamSynchronize(catStream_t stream) {
  return guarded([&] { to_stream(stream).synchronize(); });
}

catError_t catStreamQuery(catStream_t stream) {
  return guarded([&] { return to_stream(stream).query() ? catSuccess : catErrorNotReady; });
}

catError_t catStreamWaitEvent(catStream_t stream, catEvent_t event, unsigned int flags) {
  return guarded([&] {
    require(flags == 0, "unknown flags for waiting on an event");
    to_stream(stream).wait_event(to_event(event));
  });
}

catError_t catStreamGetFlags(catStream_t stream, unsigned int* flags) {
  return guarded([&] {
    require(flags != nullptr, "flags is null");
    const bool exempt = to_stream(stream).kind() == Stream::Kind::kNonBlocking;
    *flags = exempt ? catStreamNonBlocking : catStreamDefault;
  });
}

catError_t catStreamGetDevice(catStream_t stream, int* device) {
  return guarded([&] {
    require(device != nullptr, "device is null");
    *device = to_stream(stream).device().ordinal();
  });
}

catError_t catStreamGetId(catStream_t stream, unsigned long long* id) {
  return guarded([&] {
    require(id != nullptr, "id is null");
    *id = to_stream(stream).id();
  });
}

catError_t catLaunchHostFunc(catStream_t stream, catHostFn_t fn, void* userData) {
  return guarded([&] {
    require(fn != nullptr, "the host function is null");
    to_stream(stream).enqueue_host_function(fn, userData);
  });
}

catError_t catEventCreate(catEvent_t* event) {
  return catEventCreateWithFlags(event, catEventDefault);
}

catError_t catEventCreateWithFlags(catEvent_t* event, unsigned int flags) {
  return guarded([&] {
    require(event != nullptr, "event is null");
    require((flags & ~(catEventBlockingSync | catEventDisableTiming)) == 0, "unknown event flags");
    Device::current();
    auto made = std::make_unique<Event>((flags & catEventDisableTiming) == 0);
    *event = event_handles().insert(*made);
    made.release();
  });
}

catError_t catEventDestroy(catEvent_t event) {
  return guarded([&] {
    to_event(event);
    delete event_handles().remove(event);
  });
}

catError_t catEventRecord(catEvent_t event, catStream_t stream) {
  return guarded([&] { to_stream(stream).record(to_event(event)); });
}

catError_t catEventQuery(catEvent_t event) {
  return guarded([&] { return to_event(event).query() ? catSuccess : catErrorNotReady; });
}

catError_t catEventSynchronize(catEvent_t event) {
  return guarded([&] { to_event(event).synchronize(); });
}

catError_t catEventElapsedTime(float* ms, catEvent_t start, catEvent_t end) {
  return guarded([&] {
    require(ms != nullptr, "ms is null");
    *ms = Event::elapsed_ms(to_event(start), to_event(end));
  });
}

catError_t catMalloc(void** memory, size_t bytes) {
  return guarded([&] {
    require(memory != nullptr, "memory is null");
    *memory = allocate(bytes, MemoryKind::kDevice);
  });
}

catError_t catFree(void* memory) {
  return guarded([&] { release(memory, MemoryKind::kDevice); });
}

catError_t catMallocHost(void** memory, size_t bytes) {
  return guarded([&] {
    require(memory != nullptr, "memory is null");
    *memory = allocate(bytes, MemoryKind::kHost);
  });
}

catError_t catFreeHost(void* memory) {
  return guarded([&] { release(memory, MemoryKind::kHost); });
}

// The caller waits anyhow, so it copies by itself, and no driver is held up however much it is.
catError_t catMemcpy(void* to, const void* from, size_t bytes) {
  return guarded([&] {
    check_range(to, bytes);
    check_range(from, bytes);
    Device::current().wait_for_default_stream();
    if (bytes != 0) std::memmove(to, from, bytes);
  });
}

catError_t catMemset(void* to, int value, size_t bytes) {
  return guarded([&] {
    check_range(to, bytes);
    Device::current().wait_for_default_stream();
    if (bytes != 0) std::memset(to, value, bytes);
  });
}

catError_t catMemcpyAsync(void* to, const void* from, size_t bytes, catStream_t stream) {
  return guarded([&] {
    check_range(to, bytes);
    check_range(from, bytes);
    Stream& where = to_stream(stream);
    if (bytes != 0) where.enqueue_copy(to, from, bytes);
  });
}

catError_t catMemsetAsync(void* to, int value, size_t bytes, catStream_t stream) {
  return guarded([&] {
    check_range(to, bytes);
    Stream& where = to_stream(stream);
    if (bytes != 0) where.enqueue_fill(to, value, bytes);
  });
}

catError_t catMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                       size_t height) {
  return guarded([&] {
    const RowCopy rows = rows_to_copy(to, to_pitch, from, from_pitch, width, height);
    Device::current().wait_for_default_stream();
    rows.run();
  });
}

catError_t catMemset2D(void* to, size_t pitch, int value, size_t width, size_t height) {
  return guarded([&] {
    const RowFill rows = rows_to_fill(to, pitch, value, width, height);
    Device::current().wait_for_default_stream();
    rows.run();
  });
}

catError_t catMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                            size_t width, size_t height, catStream_t stream) {
  return guarded([&] {
    const RowCopy rows = rows_to_copy(to, to_pitch, from, from_pitch, width, height);
    Stream& where = to_stream(stream);
    if (rows.bytes() != 0) where.enqueue_rows(rows);
  });
}

catError_t catMemset2DAsync(void* to, size_t pitch, int value, size_t width, size_t height,
                            catStream_t stream) {
  return guarded([&] {
    const RowFill rows = rows_to_fill(to, pitch, value, width, height);
    Stream& where = to_stream(stream);
    if (rows.bytes() != 0) where.enqueue_rows(rows);
  });
}

catError_t catMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  return guarded([&] {
    require(free_bytes != nullptr && total_bytes != nullptr, "a result pointer is null");
    const SharedResources shared = shared_resources();
    *free_bytes = shared.free_bytes;
    *total_bytes = shared.total_bytes;
  });
}

catError_t catPointerGetAttributes(catPointerAttributes* attributes, const void* pointer) {
  return guarded([&] {
    require(attributes != nullptr, "attributes is null");
    const std::optional<MemoryBlock> block = Memory::process().find(pointer);
    *attributes = {catMemoryTypeUnregistered, -1};
    if (!block) return;
    attributes->device = block->device;
    attributes->type = block->kind == MemoryKind::kHost ? catMemoryTypeHost : catMemoryTypeDevice;
  });
}
