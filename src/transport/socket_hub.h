// SocketHub: one rank's links over TCP: dials for those that send, accepts for those that receive.
//
// Every link has a connection of its own, made by its sender without waiting for the receiver and
// begun with the proof of the communicator's key (link_handshake.h, lobby.h). The link against it
// may use it too (socket_link.h). A sender that was dropped as a stranger, in a crowd, tries again.
//
// Threads: poll() from one thread at a time, links from others, connect(), listen() and has_come()
// from any. Nothing waits. Owner: links share their state with the hub, which goes on sending what
// a link left behind; what the kernel has not taken when the hub is destroyed is lost. Failure:
// making the same link twice throws kInternal; a connection's failure is thrown by its link. That
// the way between two hosts is lost the receiver notices, by the kernel's probes, in the time that
// config sets (CATENARY_PEER_TIMEOUT), or the sender, if it has nothing on the way: bytes may be on
// the way for as long as a receiver is late. In the handshake both notice. Where two links share a
// stream the other one, which is idle meanwhile, tells for both.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "src/base/clock.h"
#include "src/base/unique_fd.h"
#include "src/bootstrap/socket_address.h"
#include "src/bootstrap/unshared_fd.h"
#include "src/transport/link_handshake.h"
#include "src/transport/lobby.h"
#include "src/transport/socket_link.h"

namespace catenary {

// The address to listen on, with a port of its own; config: NCCL_SOCKET_IFNAME, NCCL_SOCKET_FAMILY.
struct SocketListener {
  SocketAddress address;
  UnsharedFd socket;
};
SocketListener open_listener(const Config& config);
SocketListener open_listener(const SocketAddress& address);
// The addresses of those interfaces that suit equally well, the one that open_listener() takes
// first, without a socket, for those who bind by other means. Throws Error.
std::vector<SocketAddress> choose_socket_addresses(const Config& config);

// Where a rank listens.
struct SocketPeer {
  SocketAddress address;
  bool is_on_this_machine = false;  // in another container or namespace of it
};

class SocketHub {
 public:
  // `peers`: by rank. The context's key serves as it is: derive it first.
  SocketHub(UnsharedFd listener, const TransportContext& context, std::vector<SocketPeer> peers);

  std::unique_ptr<SendLink> connect(const LinkSpec& spec);
  std::unique_ptr<RecvLink> listen(const LinkSpec& spec);
  // Whether the sender's connection is here and proven.
  bool has_come(const LinkSpec& spec);
  // Whether bytes were sent since the last time.
  bool poll();
  // Becomes readable when a connection has news after this. -1: while some are being made, or there
  // is none to be had.
  int wait_descriptor();
  // Throws kRemote if a connection has failed that was still to carry something.
  void check_sent();
  // Leaves nothing unread on a stream that carries messages of both ranks: closing it would throw
  // away what the kernel has yet to send.
  ~SocketHub();

 private:
  // Of a link, once both sides have proven who they are.
  struct Line {
    SharedSocket socket;
    bool is_watched = false;  // by epoll_
  };
  struct Outgoing {
    std::shared_ptr<SocketSender> sender;
    LinkIntroduction introduction;
    UnsharedFd socket;                       // until the handshake is done
    std::optional<LinkHandshake> handshake;  // of the attempt that goes on
    bool is_dialing = true;
    bool is_watched = false;           // what is on the way in the handshake
    std::optional<Deadline> patience;  // with a receiver that cut us off once
    Deadline pause = Deadline::never();
    int pause_ms = 1;
    Line line;
  };
  struct Incoming {
    std::shared_ptr<SocketReceiver> receiver;  // null until listen()
    Line line;
  };

  // Why it could not; empty if the connection is on its way.
  std::string dial(Outgoing& outgoing) const;
  void serve(std::size_t index, Outgoing& outgoing);
  void connected(std::size_t index, Outgoing& outgoing);
  std::int64_t patience_s() const { return context_.config->peer_timeout_s; }
  static void give_up(Outgoing& outgoing, const std::string& why);
  bool is_time_to_look();
  void serve_guests();
  void seat(const LinkIntroduction& link, UnsharedFd socket);
  void share(std::size_t index);
  bool may_share(std::size_t index) const;
  void look_at_ways();
  std::vector<SharedSocket> shared_sockets() const;
  SharedSocket proven(int peer, UnsharedFd socket) const;
  bool watch(Line& line) const;

  const UnsharedFd listener_;
  const TransportContext context_;
  const SlotRingShape shape_;
  const std::vector<SocketPeer> peers_;
  std::mutex mutex_;
  // Guarded by mutex_.
  std::map<std::size_t, Outgoing> outgoing_;  // by peer and channel
  std::map<std::size_t, Incoming> incoming_;
  Lobby lobby_;
  std::int64_t looked_ns_ = 0;  // at who calls although nobody is awaited
  std::size_t awaited_ = 0;     // receivers without a connection
  UniqueFd epoll_;              // from the first sleep on
};

}  // namespace catenary
