// Executor::DriveScope: what the parts of Executor hold the drive lock with. For them alone.
#pragma once

#include "src/device/executor.h"

namespace catenary {

// Holds the drive lock. Leaving tells the peers of what was begun, and rings for those who wait
// here if something moved, or if they asked.
class Executor::DriveScope {
 public:
  explicit DriveScope(Executor& executor) noexcept : executor_(executor) {}
  ~DriveScope() {
    const bool asked = executor_.unlock();
    if (begun != nullptr) begun->tell_peers();
    if (moved || (asked && !watching)) executor_.bell_.ring_lightly();
  }
  bool moved = false;
  // This thread goes to sleep on the heads' doorbells itself, so others need not be woken for that.
  bool watching = false;
  Beginning* begun = nullptr;

 private:
  Executor& executor_;
};

}  // namespace catenary
