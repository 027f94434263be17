// UnsharedFd: a descriptor that a forked child does not keep.
//
// The death of a process shows on its sockets only when the last copy of them is closed. A program
// that forks (data loader workers do) would hand copies to children that may outlive it, and its
// death would stay unseen. So in the child of every fork these descriptors are replaced: the number
// stays taken, but refers to /dev/null. What is left of a communicator in a child is good for
// nothing but destruction. Close-on-exec does the same for programs that are started.
//
// Any thread. Nothing waits. The registry behind it is global to the process, because fork is.
#pragma once

#include <utility>

#include "src/base/unique_fd.h"

namespace catenary {

class UnsharedFd {
 public:
  UnsharedFd() = default;
  explicit UnsharedFd(UniqueFd fd);
  UnsharedFd(UnsharedFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UnsharedFd& operator=(UnsharedFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~UnsharedFd();

  int get() const noexcept { return fd_; }
  explicit operator bool() const noexcept { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

}  // namespace catenary
