// PathWatch: whether the ways to other hosts are there, for networks that would not tell.
//
// Beside such a network goes a TCP connection to each peer that is watched, over the same
// interface. Both ends prove the communicator's key (link_handshake.h), and nothing is ever said
// again: the kernels at its ends ask each other whether it is still there, for processes that are
// busy, late or stopped as well.
// Once that fails, and a new connection cannot be made soon, the way is lost. If the peer's kernel
// has taken nothing of what we said, its listener may have had no room: then the system tries long
// for a new one. If it does so in vain for the first one, the way is lost too, unless the network
// itself has brought something from that peer: then only ours is filtered, and the peer is not
// watched. A connection that was refused or closed shows a host that answers: whether its rank
// lives, others know. But who was cut off in the handshake, in a crowd of strangers, tries again.
// And where refusals go on, and the network has brought nothing either, it is another host that
// has the peer's address: the way is lost.
//
// Threads: any. Nothing waits, but each attempt to connect, in watch() or check(), for as long as
// the host takes to answer, 2 ms at most. Owner: a transport. Failure: check() throws kRemote.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "src/base/clock.h"
#include "src/bootstrap/socket_address.h"
#include "src/bootstrap/unshared_fd.h"
#include "src/transport/link_handshake.h"
#include "src/transport/lobby.h"
#include "src/transport/socket_hub.h"

namespace catenary {

class PathWatch {
 public:
  // `key` serves as it is: derive it first. `peers`: where the other ranks listen, by rank; none
  // for those that cannot be watched. `patience_s`: how long the kernels ask in vain. `has_come`:
  // whether the network has brought anything from a peer so far.
  PathWatch(int rank, const Key& key, SocketListener listener,
            std::vector<std::optional<SocketAddress>> peers, std::int64_t patience_s,
            std::function<bool(int peer)> has_come);

  // From now on.
  void watch(int peer);
  // Throws if the way to a peer that is watched is lost. Looks a few times a second; else it costs
  // a look at the clock.
  void check();

 private:
  enum class State {
    kUnwatched,
    kToDial,
    kDialing,
    kGreeting,  // connected, and nobody has proven anything
    kThere,
  };
  struct Path {
    State state = State::kToDial;
    UnsharedFd socket;
    std::optional<LinkHandshake> handshake;  // in kGreeting
    int cuts = 0;                            // in a row
    int refusals = 0;                        // before anything came from the peer
    Deadline pause = Deadline::after_ms(0);  // no attempt before
    bool was_connected = false;              // once
    bool was_reached = false;                // by this connection, or the one that was given up
    bool is_given_up = false;                // by ours after that, and not connected anew
    std::optional<Deadline> until;           // a connection is made until then, or the way is lost
    void note_reach();
    void forget() {
      *this = {};
      state = State::kUnwatched;
    }
  };

  void dial(int peer, Path& path) const;
  void look(int peer, Path& path) const;
  void greet(Path& path) const;
  void cut_off(Path& path) const;
  void failed(int peer, Path& path, int error_number) const;
  void refused(int peer, Path& path, int error_number) const;
  void do_without(int peer, Path& path, int error_number) const;
  void attend_guests();

  const int rank_;
  const Key key_;
  const SocketListener listener_;
  const std::vector<std::optional<SocketAddress>> peers_;
  const std::int64_t patience_s_;
  const std::function<bool(int peer)> has_come_;
  std::mutex mutex_;
  // Guarded by mutex_.
  std::map<int, Path> paths_;
  Lobby lobby_;
  std::vector<UnsharedFd> watchers_;  // of the way to us; nobody says anything
  std::int64_t looked_ns_ = 0;
};

}  // namespace catenary
