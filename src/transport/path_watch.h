// PathWatch: whether the ways to other hosts are there, for networks that would not tell.
//
// Beside such a network goes a TCP connection to each peer that is watched, over the same
// interface, on which nothing is ever said. The kernels at its ends ask each other whether it is
// still there, for processes that are busy, late or stopped as well. A connection that is lost and
// cannot be made anew soon, or that the system could not make at all, is a lost way. One that was
// refused or closed shows a host that answers: whether its rank lives, others know.
//
// Threads: any. Nothing waits. Owner: a transport. Failure: check() throws kRemote. Nothing is
// read; a crowd of strangers can only end the watch.
#pragma once

#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "src/base/clock.h"
#include "src/base/unique_fd.h"
#include "src/bootstrap/socket_address.h"
#include "src/transport/socket_hub.h"

namespace catenary {

class PathWatch {
 public:
  // `peers`: where the other ranks listen, by rank; none for those that cannot be watched.
  // `patience_s`: for how long a way may be lost before that is an error.
  PathWatch(int rank, SocketListener listener, std::vector<std::optional<SocketAddress>> peers,
            std::int64_t patience_s);

  // From now on.
  void watch(int peer);
  // Throws if the way to a peer that is watched is lost. Looks a few times a second; else it costs
  // a look at the clock.
  void check();

 private:
  struct Path {
    UniqueFd socket;
    bool is_there = false;  // the connection is made
    // The connection was lost, and is made anew until then, or the way is lost too.
    std::optional<Deadline> until;
    bool is_watched() const { return socket || until; }
    void forget() {
      socket.reset();
      until.reset();
    }
  };

  // Whether it is on its way; if not, the errno.
  int dial(int peer, Path& path) const;
  void look(int peer, Path& path) const;
  void failed(int peer, Path& path, int error_number) const;
  void make_room();

  const int rank_;
  const SocketListener listener_;
  const std::vector<std::optional<SocketAddress>> peers_;
  const std::int64_t patience_s_;
  std::mutex mutex_;
  // Guarded by mutex_.
  std::map<int, Path> paths_;
  std::deque<UnsharedFd> guests_;  // who watches the way to us
  Deadline next_look_ = Deadline::after_ms(0);
};

}  // namespace catenary
