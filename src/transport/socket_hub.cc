#include "src/transport/socket_hub.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <iterator>

#include "src/base/error.h"
#include "src/base/refusals.h"
#include "src/base/scope_exit.h"
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
constexpr int kNearSendBytes = 256 * 1024;

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
      peers_(std::move(peers)) {}

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
  // The introduction is usually taken at once: who has come with it is no stranger.
  serve(outgoing);
  return std::make_unique<SocketSendLink>(outgoing.sender);
}

std::unique_ptr<RecvLink> SocketHub::listen(const LinkSpec& spec) {
  const std::lock_guard lock(mutex_);
  Incoming& incoming = incoming_[link_index(spec)];
  if (incoming.receiver) {
    throw_error(ErrorCode::kInternal, "channel %d of the link from rank %d was made before",
                static_cast<int>(spec.channel), spec.peer);
  }
  incoming.receiver = std::make_shared<SocketReceiver>(shape_, LinkEnds{context_.rank, spec.peer});
  if (incoming.has_come) {
    incoming.receiver->connected(std::move(incoming.socket));
  } else {
    ++awaited_;
  }
  return std::make_unique<SocketRecvLink>(incoming.receiver);
}

bool SocketHub::has_come(const LinkSpec& spec) {
  const std::lock_guard lock(mutex_);
  const auto incoming = incoming_.find(link_index(spec));
  return incoming != incoming_.end() && incoming->second.has_come;
}

bool SocketHub::poll() {
  const std::lock_guard lock(mutex_);
  bool moved = false;
  for (auto& [index, outgoing] : outgoing_) {
    if (outgoing.is_dialing) serve(outgoing);
    moved = outgoing.sender->pump() || moved;
  }
  if (awaited_ > 0 || is_time_to_look()) serve_guests();
  return moved;
}

int SocketHub::wait_descriptor() {
  const std::lock_guard lock(mutex_);
  if (awaited_ > 0) return -1;
  if (!epoll_) epoll_ = UniqueFd(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_) return -1;
  for (auto& [index, outgoing] : outgoing_) {
    if (outgoing.is_dialing || !outgoing.sender->watch_with(epoll_.get())) return -1;
  }
  for (auto& [index, incoming] : incoming_) {
    if (incoming.receiver && !incoming.receiver->watch_with(epoll_.get())) return -1;
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
  if (is_time_to_look()) serve_guests();
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
  outgoing.socket =
      UniqueFd(::socket(address.family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!outgoing.socket) return "cannot make a TCP socket: " + errno_text(errno);
  send_without_delay(outgoing.socket.get());
  notice_lost_ways(outgoing.socket.get(), patience_s());
  const SocketAddress::Raw raw = address.raw();
  if (::connect(outgoing.socket.get(), raw.get(), raw.bytes) != 0 && errno != EINPROGRESS &&
      errno != EINTR) {
    return "connecting to " + address.text() + ": " + errno_text(errno);
  }
  outgoing.handshake = LinkHandshake::initiate(context_.key, outgoing.introduction);
  outgoing.is_watched = false;
  return "";
}

void SocketHub::serve(Outgoing& outgoing) const {
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
  if (state == LinkHandshake::State::kDone) {
    outgoing.is_dialing = false;
    notice_lost_bytes(outgoing.socket.get(), 0);
    if (peers_[outgoing.introduction.to].is_on_this_machine) stay_close(outgoing.socket.get());
    return outgoing.sender->connected(std::move(outgoing.socket));
  }
  if (!outgoing.patience) outgoing.patience = Deadline::after_ms(kRefusalPatienceMs);
  if (!handshake.was_cut() || outgoing.patience->passed()) {
    return give_up(outgoing, "connecting to " + peers_[outgoing.introduction.to].address.text() +
                                 ": " + handshake.failure());
  }
  outgoing.pause = Deadline::after_ms(outgoing.pause_ms);
  outgoing.pause_ms = std::min(2 * outgoing.pause_ms, kLongestPauseMs);
}

void SocketHub::give_up(Outgoing& outgoing, const std::string& why) {
  outgoing.is_dialing = false;
  outgoing.sender->failed(why);
}

// One system call tells who has said something, and whether somebody has come.
void SocketHub::serve_guests() {
  guest_fds_.assign(1, {listener_.get(), POLLIN, 0});
  for (const Guest& guest : guests_) guest_fds_.push_back({guest.socket.get(), POLLIN, 0});
  if (::poll(guest_fds_.data(), guest_fds_.size(), 0) > 0) {
    for (std::size_t i = 0; i < guests_.size(); ++i) {
      Guest& guest = guests_[i];
      if (guest.socket && guest_fds_[i + 1].revents != 0 && !attend(guest)) guest.socket.reset();
    }
  }
  const bool someone_knocks = guest_fds_[0].revents != 0;
  guest_fds_.clear();
  expel_late();
  if (someone_knocks) accept_guests();
}

void SocketHub::expel_late() {
  std::erase_if(guests_, [this](const Guest& guest) {
    const bool is_late = guest.socket && guest.is_stranger() && guest.deadline.passed();
    if (is_late) refuse(guest, "it has not said in time who it is");
    return is_late || !guest.socket;
  });
}

void SocketHub::accept_guests() {
  const int most = awaited_ > 0 ? kAcceptsAtOnce : kAcceptsNowAndThen;
  for (int i = 0; i < most; ++i) {
    UniqueFd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) {
      // Out of descriptors: the connection stays in the queue, and the next poll tries again.
      if (errno == EMFILE || errno == ENFILE) make_room();
      return;
    }
    notice_lost_ways(socket.get(), patience_s());
    notice_lost_bytes(socket.get(), patience_s());
    std::string from = SocketAddress::text_of_peer(socket.get());
    Guest guest = {std::move(socket), std::move(from),
                   LinkHandshake::accept(context_.key, context_.rank, context_.nranks),
                   Deadline::after_ms(kStrangerPatienceMs)};
    if (!attend(guest)) continue;
    const auto strangers = std::ranges::count_if(guests_, &Guest::is_stranger);
    if (guest.is_stranger() && strangers >= static_cast<std::ptrdiff_t>(kMostStrangers)) {
      make_room();
    }
    guests_.push_back(std::move(guest));
  }
}

// The oldest of those who have not introduced themselves goes.
void SocketHub::make_room() {
  const auto oldest = std::ranges::find_if(guests_, &Guest::is_stranger);
  if (oldest == guests_.end()) return;
  refuse(*oldest, "too many came after it before it had said anything");
  guests_.erase(oldest);
}

// Does what the guest's bytes ask for. False: it is a guest no more.
bool SocketHub::attend(Guest& guest) {
  const bool was_stranger = guest.is_stranger();
  const LinkHandshake::State state = guest.handshake.advance(guest.socket.get());
  if (was_stranger && !guest.is_stranger()) {
    // Nobody else can make a seal, but who listens on the way can repeat one.
    if (!nonces_.insert(guest.handshake.nonce()).second) {
      refuse(guest, "it repeats what a member has said");
      return false;
    }
    forget_double(guest);
  }
  switch (state) {
    case LinkHandshake::State::kBusy: return true;
    case LinkHandshake::State::kDone: seat(guest); return false;
    case LinkHandshake::State::kFailed:
      // Who goes before it has said anything wrong may be a member that gives up, or ends.
      if (guest.handshake.is_refused()) refuse(guest, guest.handshake.failure());
      return false;
  }
  return false;
}

void SocketHub::refuse(const Guest& guest, const std::string& why) const {
  note_refusal(Refused::kLink, format("rank %d", context_.rank), guest.from, why);
}

// A sender that connects once more has given up its last attempt, of which we need not have heard.
void SocketHub::forget_double(const Guest& newer) {
  const LinkIntroduction& link = newer.handshake.introduction();
  for (Guest& guest : guests_) {
    const LinkIntroduction& other = guest.handshake.introduction();
    if (&guest != &newer && !guest.is_stranger() && other.from == link.from &&
        other.channel == link.channel) {
      guest.socket.reset();
    }
  }
}

void SocketHub::seat(Guest& guest) {
  const LinkIntroduction& link = guest.handshake.introduction();
  Incoming& incoming = incoming_[link_index(static_cast<int>(link.from), link.channel)];
  // A second connection for one link is a peer gone wrong; the first one stays.
  if (incoming.has_come) return;
  incoming.has_come = true;
  notice_lost_bytes(guest.socket.get(), 0);
  if (incoming.receiver) {
    incoming.receiver->connected(std::move(guest.socket));
    --awaited_;
  } else {
    incoming.socket = std::move(guest.socket);
  }
}

}  // namespace catenary
