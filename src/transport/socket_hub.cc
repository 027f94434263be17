#include "src/transport/socket_hub.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "src/base/error.h"
#include "src/base/log.h"
#include "src/base/scope_exit.h"
#include "src/bootstrap/socket_interface.h"
#include "src/bootstrap/tcp.h"

namespace catenary {
namespace {

constexpr std::size_t kMostGuests = 256;
// When the room is full, who has not proven itself for this long makes way.
constexpr std::int64_t kPatience_ns = 5'000'000'000;

std::size_t link_index(int peer, std::uint32_t channel) {
  return static_cast<std::size_t>(peer) * kChannelCount + channel;
}
std::size_t link_index(const LinkSpec& spec) {
  return link_index(spec.peer, static_cast<std::uint32_t>(spec.channel));
}

void send_without_delay(int socket) {
  const int on = 1;
  // Can only fail on what is no TCP socket.
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

class SocketSendLink final : public SendLink {
 public:
  explicit SocketSendLink(std::shared_ptr<SocketSender> sender) : sender_(std::move(sender)) {}
  ByteSpan try_acquire(std::size_t bytes) override { return sender_->try_acquire(bytes); }
  void commit(std::size_t bytes) override { sender_->commit(bytes); }
  bool try_flush() override { return sender_->try_flush(); }

 private:
  std::shared_ptr<SocketSender> sender_;
};

class SocketRecvLink final : public RecvLink {
 public:
  explicit SocketRecvLink(std::shared_ptr<SocketReceiver> receiver)
      : receiver_(std::move(receiver)) {}
  ByteView try_peek() override { return receiver_->try_peek(); }
  void release() override { receiver_->release(); }

 private:
  std::shared_ptr<SocketReceiver> receiver_;
};

}  // namespace

SocketListener open_listener(const Config& config) {
  SocketListener listener;
  listener.address =
      choose_socket_interface(list_socket_interfaces(), config.socket_ifname, config.socket_family)
          .address;
  listener.socket = listen_on(listener.address);
  return listener;
}

SocketHub::SocketHub(UnsharedFd listener, const TransportContext& context,
                     std::vector<SocketAddress> peers)
    : listener_(std::move(listener)),
      context_(context),
      shape_{context.slots, context.slot_bytes},
      peers_(std::move(peers)) {}

std::unique_ptr<SendLink> SocketHub::connect(const LinkSpec& spec) {
  const LinkIntroduction introduction = {static_cast<std::uint32_t>(context_.rank),
                                         static_cast<std::uint32_t>(spec.peer),
                                         static_cast<std::uint32_t>(spec.channel)};
  const std::lock_guard lock(mutex_);
  const auto [entry, is_new] = outgoing_.try_emplace(
      link_index(spec), Outgoing{std::make_shared<SocketSender>(shape_, spec.peer), UniqueFd(),
                                 LinkHandshake::initiate(context_.key, introduction)});
  if (!is_new) {
    throw_error(ErrorCode::kInternal, "channel %u of the link to rank %d was made before",
                introduction.channel, spec.peer);
  }
  // A link that could not be dialled was not made, and may be tried again.
  ScopeExit forget([&, at = entry] { outgoing_.erase(at); });
  dial(entry->second, peers_[introduction.to]);
  forget.release();
  return std::make_unique<SocketSendLink>(entry->second.sender);
}

std::unique_ptr<RecvLink> SocketHub::listen(const LinkSpec& spec) {
  const std::lock_guard lock(mutex_);
  Incoming& incoming = incoming_[link_index(spec)];
  if (incoming.receiver) {
    throw_error(ErrorCode::kInternal, "channel %d of the link from rank %d was made before",
                static_cast<int>(spec.channel), spec.peer);
  }
  incoming.receiver = std::make_shared<SocketReceiver>(shape_, spec.peer);
  if (incoming.has_come) {
    incoming.receiver->connected(std::move(incoming.socket));
  } else {
    ++awaited_;
  }
  return std::make_unique<SocketRecvLink>(incoming.receiver);
}

void SocketHub::poll() {
  const std::lock_guard lock(mutex_);
  serve_outgoing();
  // Who is not awaited can stand in the queue of the kernel.
  if (awaited_ == 0) return;
  accept_guests();
  serve_guests();
}

void SocketHub::dial(Outgoing& outgoing, const SocketAddress& address) {
  outgoing.socket =
      UniqueFd(::socket(address.family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!outgoing.socket) throw_system_error("cannot make a TCP socket", errno);
  send_without_delay(outgoing.socket.get());
  const SocketAddress::Raw raw = address.raw();
  if (::connect(outgoing.socket.get(), raw.get(), raw.bytes) != 0 && errno != EINPROGRESS &&
      errno != EINTR) {
    throw_system_error("cannot connect to " + address.text(), errno);
  }
}

void SocketHub::serve_outgoing() {
  for (auto& [index, outgoing] : outgoing_) {
    if (outgoing.is_dialing) {
      const LinkHandshake::State state = outgoing.handshake.advance(outgoing.socket.get());
      if (state == LinkHandshake::State::kBusy) continue;
      outgoing.is_dialing = false;
      if (state == LinkHandshake::State::kDone) {
        outgoing.sender->connected(std::move(outgoing.socket));
      } else {
        const std::uint32_t peer = outgoing.handshake.introduction().to;
        outgoing.sender->failed("connecting to " + peers_[peer].text() + ": " +
                                outgoing.handshake.failure());
      }
    }
    outgoing.sender->pump();
  }
}

// Makes room. Not done without need: a peer that is busy elsewhere may take its time.
void SocketHub::drop_old_guests() {
  const std::int64_t before = now_ns() - kPatience_ns;
  std::erase_if(guests_, [&](const Guest& guest) { return guest.since_ns < before; });
}

void SocketHub::accept_guests() {
  if (guests_.size() >= kMostGuests) drop_old_guests();
  while (guests_.size() < kMostGuests) {
    UniqueFd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) {
      // Out of descriptors: the connection stays in the queue, and the next poll tries again.
      if (errno == EMFILE || errno == ENFILE) drop_old_guests();
      return;
    }
    guests_.push_back({std::move(socket),
                       LinkHandshake::accept(context_.key, context_.rank, context_.nranks),
                       now_ns()});
  }
}

void SocketHub::serve_guests() {
  std::erase_if(guests_, [this](Guest& guest) {
    switch (guest.handshake.advance(guest.socket.get())) {
      case LinkHandshake::State::kBusy: return false;
      case LinkHandshake::State::kDone: seat(guest); return true;
      case LinkHandshake::State::kFailed:
        log_info(Subsystem::kNet, -1, "A connection was dropped: " + guest.handshake.failure());
        return true;
    }
    return true;
  });
}

void SocketHub::seat(Guest& guest) {
  const LinkIntroduction& link = guest.handshake.introduction();
  Incoming& incoming = incoming_[link_index(static_cast<int>(link.from), link.channel)];
  // A second connection for one link is a peer gone wrong; the first one stays.
  if (incoming.has_come) return;
  incoming.has_come = true;
  if (incoming.receiver) {
    incoming.receiver->connected(std::move(guest.socket));
    --awaited_;
  } else {
    incoming.socket = std::move(guest.socket);
  }
}

}  // namespace catenary
