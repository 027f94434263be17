#include "src/bootstrap/unshared_fd.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <vector>

#include "src/base/error.h"
#include "src/base/unique_fd.h"

namespace catenary {
namespace {

struct Registry {
  std::mutex mutex;
  std::vector<int> fds;
  UniqueFd null;

  Registry();
};

// Never destroyed: threads may close descriptors while the process exits.
Registry& registry() {
  static Registry& the_registry = *new Registry;
  return the_registry;
}

// The handlers allocate nothing: in the child only the calling thread is left.
Registry::Registry() : null(::open("/dev/null", O_RDWR | O_CLOEXEC)) {
  if (!null) throw_system_error("open /dev/null", errno);
  const int failed =
      ::pthread_atfork([] { registry().mutex.lock(); }, [] { registry().mutex.unlock(); },
                       [] {
                         for (const int fd : registry().fds) {
                           ::dup3(registry().null.get(), fd, O_CLOEXEC);
                         }
                         registry().fds.clear();
                         registry().mutex.unlock();
                       });
  if (failed != 0) throw_system_error("pthread_atfork", failed);
}

}  // namespace

// The handler that runs before a fork takes the same lock.
UnsharedFd::ForksHeldOff::ForksHeldOff() {
  Registry& all = registry();
  std::unique_lock lock(all.mutex);
  all.fds.reserve(all.fds.size() + 1);
  lock.release();
}

UnsharedFd::ForksHeldOff::~ForksHeldOff() { registry().mutex.unlock(); }

UnsharedFd::UnsharedFd(const ForksHeldOff&, int fd) noexcept : fd_(fd < 0 ? -1 : fd) {
  if (fd_ >= 0) registry().fds.push_back(fd_);
}

UnsharedFd::~UnsharedFd() {
  if (fd_ < 0) return;
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  // Not there in a forked child, where it is but a name for /dev/null.
  std::erase(all.fds, fd_);
  ::close(fd_);
}

}  // namespace catenary
