#include "src/base/asymmetric_fence.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace catenary {
namespace {

long membarrier(int command) noexcept { return ::syscall(SYS_membarrier, command, 0, 0); }

// When the library is loaded: to register takes 25 us while a process has one thread, and 12 ms, a
// grace period of the kernel, once it has more.
[[gnu::constructor]] void register_early() noexcept { has_asymmetric_fence(); }

}  // namespace

// Tried, not only asked for: a sandbox may let the one through and not the other.
bool has_asymmetric_fence() noexcept {
  static const bool has = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0 &&
                          membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0;
  return has;
}

void heavy_fence() noexcept {
  if (membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0) return;
  // A sandbox took it away since. Whoever runs now will have been interrupted by the clock.
  ::usleep(20'000);
}

}  // namespace catenary
