// The nccl* functions about memory, and errors in words.
#include <cstdint>

#include "src/api/arguments.h"
#include "src/api/comm_handle.h"
#include "src/api/export.h"
#include "src/api/guard.h"
#include "src/base/config.h"
#include "src/device/memory.h"

namespace {

using namespace catenary;

// A registration is a promise that cards need (src/transport/registration_cache.h), and shared
// memory does not. Whoever has turned them off gets null for a handle, which may be taken back;
// what was never given, or was taken back before, may not.
void* add_registration(ncclComm_t comm, const char* function, void* base, std::size_t bytes,
                       bool turned_on) {
  const CommCall call(comm, function);
  check_pointer(base, function, "buff");
  if (bytes == 0) throw_error(ErrorCode::kInvalidArgument, "%s : size is 0", function);
  if (bytes > UINTPTR_MAX - reinterpret_cast<std::uintptr_t>(base)) {
    throw_error(ErrorCode::kInvalidArgument, "%s : %zu bytes at %p are more than there can be",
                function, bytes, base);
  }
  if (!turned_on) return nullptr;
  auto registration = std::make_unique<AnnouncedBuffer>(base, bytes);
  void* const handle = registration.get();
  const std::lock_guard lock(call.handle().mutex);
  call.handle().registrations.emplace(handle, std::move(registration));
  return handle;
}

void remove_registration(ncclComm_t comm, const char* function, void* handle) {
  const CommCall call(comm, function, CommCall::Needs::kExists);
  if (handle == nullptr) return;
  const std::lock_guard lock(call.handle().mutex);
  if (call.handle().registrations.erase(handle) == 0) {
    throw_error(ErrorCode::kInvalidUsage, "%s : %p is not registered with this communicator",
                function, handle);
  }
}

}  // namespace

CATENARY_NCCL(ncclResult_t, CommRegister,
              (const ncclComm_t comm, void* buff, size_t size, void** handle)) {
  return guarded([&] {
    check_pointer(handle, "ncclCommRegister", "handle");
    *handle = add_registration(comm, "ncclCommRegister", buff, size,
                               Config::process().local_register != 0);
  });
}

CATENARY_NCCL(ncclResult_t, CommDeregister, (const ncclComm_t comm, void* handle)) {
  return guarded([&] { remove_registration(comm, "ncclCommDeregister", handle); });
}

CATENARY_NCCL(ncclResult_t, CommWindowRegister,
              (ncclComm_t comm, void* buff, size_t size, ncclWindow_t* win, int winFlags)) {
  return guarded([&] {
    check_pointer(win, "ncclCommWindowRegister", "win");
    if ((winFlags & ~NCCL_WIN_COLL_SYMMETRIC) != 0) {
      throw_error(ErrorCode::kInvalidArgument, "ncclCommWindowRegister : invalid flags 0x%x",
                  winFlags);
    }
    *win = static_cast<ncclWindow_t>(add_registration(comm, "ncclCommWindowRegister", buff, size,
                                                      Config::process().windows != 0));
  });
}

CATENARY_NCCL(ncclResult_t, CommWindowDeregister, (ncclComm_t comm, ncclWindow_t win)) {
  return guarded([&] { remove_registration(comm, "ncclCommWindowDeregister", win); });
}

CATENARY_NCCL(ncclResult_t, MemAlloc, (void** ptr, size_t size)) {
  return guarded([&] {
    check_pointer(ptr, "ncclMemAlloc", "ptr");
    *ptr = Memory::process().allocate(size, MemoryKind::kDevice, Device::current_ordinal());
  });
}

CATENARY_NCCL(ncclResult_t, MemFree, (void* ptr)) {
  return guarded([&] {
    if (ptr != nullptr) Memory::process().free(ptr, MemoryKind::kDevice);
  });
}

CATENARY_NCCL(const char*, GetErrorString, (ncclResult_t result)) {
  switch (result) {
    case ncclSuccess: return "no error";
    case ncclUnhandledCudaError:
      return "unhandled cuda error (run with NCCL_DEBUG=INFO for details)";
    case ncclSystemError: return "unhandled system error (run with NCCL_DEBUG=INFO for details)";
    case ncclInternalError:
      return "internal error - please report this issue to the NCCL developers";
    case ncclInvalidArgument: return "invalid argument (run with NCCL_DEBUG=WARN for details)";
    case ncclInvalidUsage: return "invalid usage (run with NCCL_DEBUG=WARN for details)";
    case ncclRemoteError: return "remote process exited or there was a network error";
    case ncclInProgress: return "NCCL operation in progress";
    case ncclNumResults: break;
  }
  return "unknown result code";
}

CATENARY_NCCL(void, ResetDebugInit, (void)) {}
