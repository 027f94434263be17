#include "src/transport/socket_hub.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>

#include "src/base/error.h"
#include "src/base/scope_exit.h"
#include "src/base/size_literals.h"
#include "src/bootstrap/socket_interface.h"
#include "src/bootstrap/tcp.h"

namespace catenary {
namespace {

// Few, so that those who have come get a word in before more come.
constexpr int kAcceptsAtOnce = 16;
constexpr int kAcceptsNowAndThen = 256;
// Who is not awaited may stand in the kernel's queue for a while.
constexpr std::int64_t kLookEvery_ns = 100'000'000;
// How long a receiver may cut our connections before that is an error.
constexpr std::int64_t kRefusalPatienceMs = 2000;
constexpr int kLongestPauseMs = 50;
// The kernel grants twice as much, if it may, and counts its own bookkeeping: room for some eight
// long messages. Half of that holds up senders, twice as much runs out of the caches.
constexpr int kNearSendBytes = 256_KB;

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

// Within a machine the kernel would let a sender run ahead by megabytes, which lie in no cache any
// more when they are read. Over a network as much may have to be on its way.
void stay_close(int socket) {
  // A wish: without it all works, only slower.
  ::setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &kNearSendBytes, sizeof kNearSendBytes);
}

// Of what changes from now on, not of what has not been used yet: a receiver may leave bytes where
// they are.
bool watch_changes(int epoll, int socket) {
  epoll_event wanted = {};
  wanted.events = EPOLLIN | EPOLLOUT | EPOLLET;
  return ::epoll_ctl(epoll, EPOLL_CTL_ADD, socket, &wanted) == 0;
}

// So that closing it sends all that was to be sent.
void discard_unread(int socket) {
  constexpr int kMostReads = 1024;
  std::array<std::byte, 64_KB> unread;
  for (int i = 0; i < kMostReads; ++i) {
    if (::recv(socket, unread.data(), unread.size(), MSG_DONTWAIT) <= 0) return;
  }
}

class SocketSendLink final : public SendLink {
 public:
  explicit SocketSendLink(std::shared_ptr<SocketSender> sender) : sender_(std::move(sender)) {}
  ByteSpan try_acquire(std::size_t bytes) override { return sender_->try_acquire(bytes); }
  void commit(std::size_t bytes) override { sender_->commit(bytes); }
  void commit_from(std::size_t skip, ByteView data) override { sender_->commit_from(skip, data); }
  bool spares_copy() const noexcept override { return true; }
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

std::vector<SocketAddress> choose_socket_addresses(const Config& config) {
  std::vector<SocketAddress> addresses;
  for (const SocketInterface& each : choose_socket_interfaces(
           list_socket_interfaces(), config.socket_ifname, config.socket_family)) {
    addresses.push_back(each.address);
  }
  return addresses;
}

SocketListener open_listener(const Config& config) {
  return open_listener(choose_socket_addresses(config).front());
}

SocketListener open_listener(const SocketAddress& address) {
  SocketListener listener;
  listener.address = address;
  listener.socket = listen_on(listener.address);
  return listener;
}

SocketHub::SocketHub(UnsharedFd listener, const TransportContext& context,
                     std::vector<SocketPeer> peers)
    : listener_(std::move(listener)),
      context_(context),
      shape_{context.slots, context.slot_bytes},
      peers_(std::move(peers)),
      lobby_({.door = Refused::kLink,
              .rank = context.rank,
              .nranks = context.nranks,
              .key = context.key,
              .patience_s = patience_s()},
             [this](const LinkIntroduction& link, UnsharedFd socket) {
               seat(link, std::move(socket));
             }) {}

std::unique_ptr<SendLink> SocketHub::connect(const LinkSpec& spec) {
  const LinkIntroduction introduction = {static_cast<std::uint32_t>(context_.rank),
                                         static_cast<std::uint32_t>(spec.peer),
                                         static_cast<std::uint32_t>(spec.channel)};
  const std::lock_guard lock(mutex_);
  const auto [entry, is_new] = outgoing_.try_emplace(link_index(spec));
  if (!is_new) {
    throw_error(ErrorCode::kInternal, "channel %u of the link to rank %d was made before",
                introduction.channel, spec.peer);
  }
  // A link that could not be dialled was not made, and may be tried again.
  ScopeExit forget([&, at = entry] { outgoing_.erase(at); });
  Outgoing& outgoing = entry->second;
  outgoing.sender = std::make_shared<SocketSender>(shape_, LinkEnds{context_.rank, spec.peer});
  outgoing.introduction = introduction;
  if (const std::string failure = dial(outgoing); !failure.empty()) {
    throw_error(ErrorCode::kSystem, "cannot connect to rank %d: %s", spec.peer, failure.c_str());
  }
  forget.release();
  share(entry->first);
  // The introduction is usually taken at once: who has come with it is no stranger.
  serve(entry->first, outgoing);
  return std::make_unique<SocketSendLink>(outgoing.sender);
}

std::unique_ptr<RecvLink> SocketHub::listen(const LinkSpec& spec) {
  const std::lock_guard lock(mutex_);
  const std::size_t index = link_index(spec);
  Incoming& incoming = incoming_[index];
  if (incoming.receiver) {
    throw_error(ErrorCode::kInternal, "channel %d of the link from rank %d was made before",
                static_cast<int>(spec.channel), spec.peer);
  }
  incoming.receiver = std::make_shared<SocketReceiver>(shape_, LinkEnds{context_.rank, spec.peer});
  if (incoming.line.socket) {
    incoming.receiver->connected(incoming.line.socket);
  } else {
    ++awaited_;
  }
  share(index);
  return std::make_unique<SocketRecvLink>(incoming.receiver);
}

bool SocketHub::has_come(const LinkSpec& spec) {
  const std::lock_guard lock(mutex_);
  const auto incoming = incoming_.find(link_index(spec));
  return incoming != incoming_.end() && incoming->second.line.socket;
}

bool SocketHub::poll() {
  const std::lock_guard lock(mutex_);
  bool moved = false;
  for (auto& [index, outgoing] : outgoing_) {
    if (outgoing.is_dialing) serve(index, outgoing);
    moved = outgoing.sender->pump() || moved;
  }
  const bool looks_around = is_time_to_look();
  if (awaited_ > 0 || looks_around) serve_guests();
  if (looks_around) look_at_ways();
  return moved;
}

int SocketHub::wait_descriptor() {
  const std::lock_guard lock(mutex_);
  if (awaited_ > 0) return -1;
  if (!epoll_) epoll_ = UniqueFd(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_) return -1;
  for (auto& [index, outgoing] : outgoing_) {
    if (outgoing.is_dialing || !watch(outgoing.line)) return -1;
  }
  for (auto& [index, incoming] : incoming_) {
    // Without a receiver, too: what goes against it may use it.
    if (incoming.line.socket && !watch(incoming.line)) return -1;
  }
  // What was told until now is old: who asks looks once more.
  epoll_event old[64];
  while (::epoll_wait(epoll_.get(), old, std::size(old), 0) == std::size(old)) {
  }
  return epoll_.get();
}

void SocketHub::check_sent() {
  const std::lock_guard lock(mutex_);
  for (auto& [index, outgoing] : outgoing_) outgoing.sender->check_sent();
  if (!is_time_to_look()) return;
  serve_guests();
  look_at_ways();
}

SocketHub::~SocketHub() {
  for (const SharedSocket& socket : shared_sockets()) discard_unread(socket->get());
}

// Those that carry messages of both ranks, or may.
std::vector<SharedSocket> SocketHub::shared_sockets() const {
  std::vector<SharedSocket> sockets;
  for (const auto& [index, incoming] : incoming_) {
    if (may_share(index)) sockets.push_back(incoming.line.socket);
  }
  for (const auto& [index, outgoing] : outgoing_) {
    if (!may_share(index)) sockets.push_back(outgoing.line.socket);
  }
  std::erase(sockets, nullptr);
  return sockets;
}

// Strangers are turned away also when nobody is awaited, but then they may not cost more than a
// look now and then, however many they are.
bool SocketHub::is_time_to_look() {
  const std::int64_t now = now_ns();
  if (now - looked_ns_ < kLookEvery_ns) return false;
  looked_ns_ = now;
  return true;
}

std::string SocketHub::dial(Outgoing& outgoing) const {
  const SocketAddress& address = peers_[outgoing.introduction.to].address;
  outgoing.socket = UnsharedFd::made_by(
      [&] { return ::socket(address.family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0); });
  if (!outgoing.socket) return "cannot make a TCP socket: " + errno_text(errno);
  send_without_delay(outgoing.socket.get());
  notice_lost_ways(outgoing.socket.get(), patience_s());
  notice_no_answer(outgoing.socket.get(), patience_s());
  const SocketAddress::Raw raw = address.raw();
  if (::connect(outgoing.socket.get(), raw.get(), raw.bytes) != 0 && errno != EINPROGRESS &&
      errno != EINTR) {
    return "connecting to " + address.text() + ": " + errno_text(errno);
  }
  outgoing.handshake = LinkHandshake::initiate(context_.key, outgoing.introduction);
  outgoing.is_watched = false;
  return "";
}

void SocketHub::serve(std::size_t index, Outgoing& outgoing) {
  if (!outgoing.handshake) {
    if (!outgoing.pause.passed()) return;
    const std::string failure = dial(outgoing);
    if (!failure.empty()) give_up(outgoing, failure);
    return;
  }
  const LinkHandshake::State state = outgoing.handshake->advance(outgoing.socket.get());
  // Not before: a listener that is late may have no room for who connects, and does not answer.
  if (!outgoing.is_watched && outgoing.handshake->has_spoken()) {
    notice_lost_bytes(outgoing.socket.get(), patience_s());
    outgoing.is_watched = true;
  }
  if (state == LinkHandshake::State::kBusy) return;
  const LinkHandshake handshake = std::move(*outgoing.handshake);
  outgoing.handshake.reset();
  if (state == LinkHandshake::State::kDone) return connected(index, outgoing);
  if (!outgoing.patience) outgoing.patience = Deadline::after_ms(kRefusalPatienceMs);
  if (!handshake.was_cut() || outgoing.patience->passed()) {
    return give_up(outgoing, "connecting to " + peers_[outgoing.introduction.to].address.text() +
                                 ": " + handshake.failure());
  }
  outgoing.pause = Deadline::after_ms(outgoing.pause_ms);
  outgoing.pause_ms = std::min(2 * outgoing.pause_ms, kLongestPauseMs);
}

void SocketHub::connected(std::size_t index, Outgoing& outgoing) {
  outgoing.is_dialing = false;
  outgoing.line.socket =
      proven(static_cast<int>(outgoing.introduction.to), std::move(outgoing.socket));
  outgoing.sender->connected(outgoing.line.socket);
  share(index);
}

void SocketHub::give_up(Outgoing& outgoing, const std::string& why) {
  outgoing.is_dialing = false;
  outgoing.sender->failed(why);
}

void SocketHub::serve_guests() {
  lobby_.serve(listener_.get(), awaited_ > 0 ? kAcceptsAtOnce : kAcceptsNowAndThen);
}

void SocketHub::seat(const LinkIntroduction& link, UnsharedFd socket) {
  const std::size_t index = link_index(static_cast<int>(link.from), link.channel);
  Incoming& incoming = incoming_[index];
  // A second connection for one link is a peer gone wrong; the first one stays.
  if (incoming.line.socket) return;
  incoming.line.socket = proven(static_cast<int>(link.from), std::move(socket));
  if (incoming.receiver) {
    incoming.receiver->connected(incoming.line.socket);
    --awaited_;
  }
  share(index);
}

// A connection whose handshake is over.
SharedSocket SocketHub::proven(int peer, UnsharedFd socket) const {
  notice_lost_bytes(socket.get(), 0);
  if (peers_[static_cast<std::size_t>(peer)].is_on_this_machine) stay_close(socket.get());
  return std::make_shared<SocketStream>(std::move(socket));
}

// Lets one of the two links between two ranks, if both are there, use the other's connection.
void SocketHub::share(std::size_t index) {
  const auto outgoing = outgoing_.find(index);
  const auto incoming = incoming_.find(index);
  if (outgoing == outgoing_.end() || incoming == incoming_.end()) return;
  if (may_share(index)) {
    if (incoming->second.line.socket) outgoing->second.sender->share(incoming->second.line.socket);
  } else if (incoming->second.receiver && outgoing->second.line.socket) {
    incoming->second.receiver->share(outgoing->second.line.socket);
  }
}

// Whether this rank's messages to the peer may go over the connection that the peer made.
bool SocketHub::may_share(std::size_t index) const {
  return LinkEnds::may_share(context_.rank, static_cast<int>(index / kChannelCount));
}

// While messages are under way on a stream, the kernel does not ask whether the other host is
// there. On the one that is not shared, none are then. A host that answers that a connection is no
// more is there: the links hear of that themselves, after what has come before it.
void SocketHub::look_at_ways() {
  for (auto& [index, outgoing] : outgoing_) {
    const auto incoming = incoming_.find(index);
    if (incoming == incoming_.end()) continue;
    const Line& own = may_share(index) ? outgoing.line : incoming->second.line;
    const int number = own.socket ? pending_error(own.socket->get()) : 0;
    if (number == 0) continue;
    const bool is_way_lost = number == ETIMEDOUT || number == EHOSTUNREACH || number == ENETUNREACH;
    if (is_way_lost || may_share(index)) outgoing.sender->failed(errno_text(number));
    if (is_way_lost && incoming->second.receiver) {
      incoming->second.receiver->failed(errno_text(number));
    }
  }
}

bool SocketHub::watch(Line& line) const {
  line.is_watched =
      line.is_watched || (line.socket && watch_changes(epoll_.get(), line.socket->get()));
  return line.is_watched;
}

}  // namespace catenary
