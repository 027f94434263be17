// DeviceError: an Error that also knows which of the device interface's codes it is.
#pragma once

#include <string>

#include "src/base/error.h"

namespace catenary {

// The values are those of catError_t, which are CUDA's.
enum class DeviceStatus : int {
  kInvalidValue = 1,
  kMemoryAllocation = 2,
  kInvalidDevice = 101,
  kInvalidResourceHandle = 400,
  kNotReady = 600,
  kNotPermitted = 800,
  kUnknown = 999,
};

class DeviceError : public Error {
 public:
  DeviceError(DeviceStatus status, const std::string& message)
      : Error(status == DeviceStatus::kMemoryAllocation ? ErrorCode::kUnhandledDevice
                                                        : ErrorCode::kInvalidArgument,
              message),
        status_(status) {}
  DeviceStatus status() const noexcept { return status_; }

 private:
  DeviceStatus status_;
};

}  // namespace catenary
