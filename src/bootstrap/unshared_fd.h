// UnsharedFd: a descriptor that a forked child does not keep.
//
// The death of a process shows on its sockets only when the last copy of them is closed. A program
// that forks (data loader workers do) would hand copies to children that may outlive it, and its
// death would stay unseen. So in the child of every fork these descriptors are replaced: the number
// stays taken, but refers to /dev/null. What is left of a communicator in a child is good for
// nothing but destruction. Close-on-exec does the same for programs that are started.
//
// Any thread. A descriptor is made and listed in one go: a thread that forks meanwhile waits for
// that, and making one waits while a thread forks. The registry behind it is global to the process,
// because fork is. Failure: std::bad_alloc, before anything is made.
#pragma once

#include <utility>

namespace catenary {

class UnsharedFd {
 public:
  UnsharedFd() = default;
  // What `make` returns, a new descriptor of its own, which it must not wait for. Empty if that is
  // negative, with the errno that it left.
  template <typename Make>
  static UnsharedFd made_by(const Make& make) {
    const ForksHeldOff held;
    return UnsharedFd(held, make());
  }
  UnsharedFd(UnsharedFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UnsharedFd& operator=(UnsharedFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~UnsharedFd();

  int get() const noexcept { return fd_; }
  explicit operator bool() const noexcept { return fd_ >= 0; }

 private:
  // While it lives no thread of the process forks, and there is room to list one descriptor.
  struct ForksHeldOff {
    ForksHeldOff();
    ~ForksHeldOff();
    ForksHeldOff(const ForksHeldOff&) = delete;
    ForksHeldOff& operator=(const ForksHeldOff&) = delete;
  };
  UnsharedFd(const ForksHeldOff&, int fd) noexcept;

  int fd_ = -1;
};

}  // namespace catenary
