// SocketHub: one rank's links over TCP: dials for those that send, accepts for those that receive.
//
// Every link has a connection of its own, made by its sender without waiting for the receiver, and
// begun with the proof of the communicator's key (link_handshake.h). Strangers who connect are read
// for no more than a greeting and a proof, hold nothing up, and are dropped.
//
// Threads: poll() from one thread at a time, links from others, connect() and listen() from any.
// Nothing waits. Owner: links share their state with the hub, which goes on sending what a link
// left behind; what the kernel has not taken when the hub is destroyed is lost. Failure: making the
// same link twice throws kInternal; a connection's failure is thrown by its link.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "src/bootstrap/socket_address.h"
#include "src/bootstrap/unshared_fd.h"
#include "src/transport/link_handshake.h"
#include "src/transport/socket_link.h"

namespace catenary {

// The address to listen on, with a port of its own; config: NCCL_SOCKET_IFNAME, NCCL_SOCKET_FAMILY.
struct SocketListener {
  SocketAddress address;
  UnsharedFd socket;
};
SocketListener open_listener(const Config& config);

class SocketHub {
 public:
  // `peers`: where each rank listens. The context's key serves as it is: derive it first.
  SocketHub(UnsharedFd listener, const TransportContext& context, std::vector<SocketAddress> peers);

  std::unique_ptr<SendLink> connect(const LinkSpec& spec);
  std::unique_ptr<RecvLink> listen(const LinkSpec& spec);
  void poll();

 private:
  struct Outgoing {
    std::shared_ptr<SocketSender> sender;
    UniqueFd socket;  // until the handshake is done
    LinkHandshake handshake;
    bool is_dialing = true;
  };
  struct Guest {
    UniqueFd socket;
    LinkHandshake handshake;
    std::int64_t since_ns;
  };
  struct Incoming {
    std::shared_ptr<SocketReceiver> receiver;  // null until listen()
    UniqueFd socket;                           // until there is a receiver
    bool has_come = false;
  };

  static void dial(Outgoing& outgoing, const SocketAddress& address);
  void serve_outgoing();
  void accept_guests();
  void drop_old_guests();
  void serve_guests();
  void seat(Guest& guest);

  const UnsharedFd listener_;
  const TransportContext context_;
  const SlotRingShape shape_;
  const std::vector<SocketAddress> peers_;
  std::mutex mutex_;
  // Guarded by mutex_.
  std::map<std::size_t, Outgoing> outgoing_;  // by peer and channel
  std::map<std::size_t, Incoming> incoming_;
  std::vector<Guest> guests_;
  std::size_t awaited_ = 0;  // receivers without a connection
};

}  // namespace catenary
