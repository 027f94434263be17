#include "src/transport/memory_door.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <limits>
#include <optional>

#include "src/base/error.h"
#include "src/base/log.h"
#include "src/bootstrap/handshake.h"
#include "src/bootstrap/stream_socket.h"

namespace catenary {
namespace {

// Messages keep their bounds on this kind of socket, so each is read whole or not at all.
constexpr int kSocketType = SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK;
constexpr int kBacklog = 4096;  // the kernel lowers it to net.core.somaxconn
constexpr std::size_t kMostVisitors = 64;
// When the room is full, who has stood in it for this long makes way.
constexpr std::int64_t kPatience_ns = 2'000'000'000;
constexpr const char* kWhat = "fetching shared memory from a neighbour";

constexpr std::string_view kPurpose = "memory door";

struct Claim {
  Mac proof;
  Mac terms;
  std::uint32_t member;
};
constexpr std::byte kMapped{1};

Mac terms_of(const DoorPact& pact) {
  return keyed_mac(pact.key, {bytes_of("terms"), bytes_of(pact.terms)});
}

struct DoorAddress {
  sockaddr_un address = {};
  socklen_t bytes = 0;

  explicit DoorAddress(const DoorName& name) {
    std::string text = "catenary-";
    for (const std::byte each : name) text += format("%02x", std::to_integer<unsigned>(each));
    address.sun_family = AF_UNIX;
    // A leading zero makes the name abstract.
    std::memcpy(address.sun_path + 1, text.data(), text.size());
    bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
};

bool is_our_user(int socket) {
  ucred peer = {};
  socklen_t bytes = sizeof peer;
  return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 &&
         peer.uid == ::geteuid();
}

ByteView bytes_of_claim(const Claim& claim) { return std::as_bytes(std::span(&claim, 1)); }

// Sends one message, and a descriptor with it unless that is negative.
bool send_message(int socket, ByteView bytes, int passed = -1) {
  iovec part = {const_cast<std::byte*>(bytes.data()), bytes.size()};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof passed)] = {};
  if (passed >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof passed);
    std::memcpy(CMSG_DATA(head), &passed, sizeof passed);
  }
  ssize_t sent = 0;
  do {
    sent = ::sendmsg(socket, &message, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(bytes.size());
}

enum class Received { kMessage, kNotYet, kEnd };

// Receives one message of exactly bytes.size(); anything else is an end. A descriptor that comes
// with it is taken if `passed` is given, and discarded by the kernel otherwise.
Received receive_message(int socket, ByteSpan bytes, UniqueFd* passed = nullptr) {
  iovec part = {bytes.data(), bytes.size()};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  if (passed != nullptr) {
    message.msg_control = control;
    // Not the padded CMSG_SPACE, which has room for a second descriptor.
    message.msg_controllen = CMSG_LEN(sizeof(int));
  }
  const ssize_t received = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  if (received < 0 && (errno == EAGAIN || errno == EINTR)) return Received::kNotYet;
  if (const cmsghdr* head = CMSG_FIRSTHDR(&message);
      received > 0 && head != nullptr && head->cmsg_type == SCM_RIGHTS) {
    int descriptor = -1;
    std::memcpy(&descriptor, CMSG_DATA(head), sizeof descriptor);
    passed->reset(descriptor);
  }
  const bool is_whole =
      received == static_cast<ssize_t>(bytes.size()) && (message.msg_flags & MSG_TRUNC) == 0;
  return is_whole ? Received::kMessage : Received::kEnd;
}

// The host's side: a room of visitors, each at some point of the dialogue.
class Handout {
 public:
  Handout(int door, int memory, int members, const DoorPact& pact)
      : door_(door),
        memory_(memory),
        pact_(pact),
        mapped_(static_cast<std::size_t>(members)),
        settled_(static_cast<std::size_t>(members)),
        unsettled_(members - 1) {
    mapped_[0] = settled_[0] = true;
  }

  std::vector<bool> run(const Wait& wait) {
    while (unsettled_ > 0 && !wait.is_cancelled() && !wait.deadline.passed()) {
      wait_for_a_stir(wait);
      std::erase_if(visitors_, [this](Visitor& visitor) { return !advance(visitor); });
      admit();
    }
    return mapped_;
  }

 private:
  struct Visitor {
    UniqueFd socket;
    std::int64_t since_ns;
    enum class Awaited { kGreeting, kClaim, kMapping } awaited = Awaited::kGreeting;
    Handshake handshake = {};
    std::size_t member = 0;
  };

  void wait_for_a_stir(const Wait& wait) const {
    std::vector<pollfd> entries;
    // A full room is not told of knocks, or it would spin.
    if (visitors_.size() < kMostVisitors) entries.push_back({door_, POLLIN, 0});
    for (const Visitor& visitor : visitors_) entries.push_back({visitor.socket.get(), POLLIN, 0});
    ::poll(entries.data(), entries.size(), wait.deadline.remaining_ms(kWaitSliceMs));
  }

  void admit() {
    if (visitors_.size() >= kMostVisitors) {
      const std::int64_t before = now_ns() - kPatience_ns;
      std::erase_if(visitors_, [&](const Visitor& visitor) { return visitor.since_ns < before; });
    }
    // No more than so many knocks at a time, lest strangers who knock without end keep us from the
    // wait.
    for (int knocks = 0; knocks < 64 && visitors_.size() < kMostVisitors; ++knocks) {
      UniqueFd socket(::accept4(door_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!socket) {
        // Out of descriptors or memory: the knock stays, and others may free some.
        if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) ::poll(nullptr, 0, 1);
        return;
      }
      if (is_our_user(socket.get())) visitors_.push_back({std::move(socket), now_ns()});
    }
  }

  // Does what the visitor's messages ask for; false when the visit is over.
  bool advance(Visitor& visitor) {
    switch (visitor.awaited) {
      case Visitor::Awaited::kGreeting: return greet(visitor);
      case Visitor::Awaited::kClaim: return answer_claim(visitor);
      case Visitor::Awaited::kMapping: return note_mapping(visitor);
    }
    return false;
  }

  bool greet(Visitor& visitor) {
    Greeting greeting;
    const Received received = receive_message(visitor.socket.get(), greeting);
    if (received != Received::kMessage) return received == Received::kNotYet;
    const std::optional<Nonce> nonce = parse_greeting(Side::kInitiator, greeting);
    if (!nonce || !is_sealed(*nonce, pact_.key, kPurpose)) return false;
    visitor.handshake = {pact_.key, kPurpose, *nonce, {}};
    fill_random(visitor.handshake.acceptor);
    visitor.awaited = Visitor::Awaited::kClaim;
    return send_message(visitor.socket.get(),
                        make_greeting(Side::kAcceptor, visitor.handshake.acceptor));
  }

  bool answer_claim(Visitor& visitor) {
    Claim claim;
    const Received received =
        receive_message(visitor.socket.get(), std::as_writable_bytes(std::span(&claim, 1)));
    if (received != Received::kMessage) return received == Received::kNotYet;
    if (!equal_secrets(claim.proof, visitor.handshake.proof(Side::kInitiator))) {
      log_info(Subsystem::kShm, -1, "A process without this communicator's key was turned away.");
      return false;
    }
    if (claim.member >= settled_.size() || settled_[claim.member]) return false;
    if (claim.terms != terms_of(pact_)) {
      log_info(Subsystem::kShm, -1,
               format("Neighbour %u was turned away: it does not have our %s.", claim.member,
                      pact_.terms.c_str()));
      settle(claim.member, false);
      return false;
    }
    visitor.member = claim.member;
    visitor.awaited = Visitor::Awaited::kMapping;
    return send_message(visitor.socket.get(), visitor.handshake.proof(Side::kAcceptor), memory_);
  }

  bool note_mapping(Visitor& visitor) {
    std::byte answer{};
    const Received received = receive_message(visitor.socket.get(), ByteSpan(&answer, 1));
    if (received == Received::kNotYet) return true;
    settle(visitor.member, received == Received::kMessage && answer == kMapped);
    return false;
  }

  void settle(std::size_t member, bool mapped) {
    if (settled_[member]) return;
    settled_[member] = true;
    mapped_[member] = mapped;
    --unsettled_;
  }

  const int door_;
  const int memory_;
  const DoorPact& pact_;
  std::vector<Visitor> visitors_;
  std::vector<bool> mapped_;
  std::vector<bool> settled_;
  int unsettled_;
};

void expect_message(int socket, ByteSpan bytes, const DoorPact& pact, const Wait& wait,
                    UniqueFd* passed = nullptr) {
  while (true) {
    switch (receive_message(socket, bytes, passed)) {
      case Received::kMessage: return;
      case Received::kEnd:
        throw_error(ErrorCode::kRemote,
                    "%s: it closed the connection: it has given up, or lacks our key or our %s",
                    kWhat, pact.terms.c_str());
      case Received::kNotYet: check_wait(wait, kWhat); wait_slice(socket, POLLIN, wait);
    }
  }
}

UniqueFd knock(const DoorName& name, const Wait& wait) {
  UniqueFd socket(::socket(AF_UNIX, kSocketType, 0));
  if (!socket) throw_system_error("cannot make a Unix socket", errno);
  const DoorAddress address(name);
  while (::connect(socket.get(), address.get(), address.bytes) != 0) {
    // The host's queue is full: it has much to do, or strangers stand in it.
    if (errno != EAGAIN && errno != EINTR) throw_system_error(kWhat, errno);
    check_wait(wait, kWhat);
    ::poll(nullptr, 0, 1);
  }
  return socket;
}

}  // namespace

UniqueFd open_door(const DoorName& name) {
  UniqueFd door(::socket(AF_UNIX, kSocketType, 0));
  const DoorAddress address(name);
  if (!door || ::bind(door.get(), address.get(), address.bytes) != 0 ||
      ::listen(door.get(), kBacklog) != 0) {
    throw_system_error("cannot listen on an abstract Unix socket", errno);
  }
  return door;
}

std::vector<bool> hand_out(int door, int memory, int members, const DoorPact& pact,
                           const Wait& wait) {
  // Who gives up before knocking does not tell. Half of the time is for them, the other one for
  // what follows without them.
  Wait half = wait;
  half.deadline =
      Deadline::after_ms(wait.deadline.remaining_ms(std::numeric_limits<int>::max()) / 2);
  return Handout(door, memory, members, pact).run(half);
}

FetchedMemory fetch_memory(const DoorName& name, int member, const DoorPact& pact,
                           const Wait& wait) {
  FetchedMemory fetched;
  fetched.visit = knock(name, wait);
  const int socket = fetched.visit.get();
  if (!is_our_user(socket)) {
    throw_error(ErrorCode::kRemote, "%s: it runs as another user", kWhat);
  }
  Handshake handshake = {pact.key, kPurpose, sealed_nonce(pact.key, kPurpose), {}};
  Greeting greeting;
  // A failed send means that the host has closed, which the next receive tells in words.
  send_message(socket, make_greeting(Side::kInitiator, handshake.initiator));
  expect_message(socket, greeting, pact, wait);
  const std::optional<Nonce> nonce = parse_greeting(Side::kAcceptor, greeting);
  if (!nonce) {
    throw_error(ErrorCode::kRemote, "%s: it speaks another protocol", kWhat);
  }
  handshake.acceptor = *nonce;
  const Claim claim = {handshake.proof(Side::kInitiator), terms_of(pact),
                       static_cast<std::uint32_t>(member)};
  send_message(socket, bytes_of_claim(claim));
  Mac proof;
  expect_message(socket, proof, pact, wait, &fetched.memory);
  if (!equal_secrets(proof, handshake.proof(Side::kAcceptor))) {
    throw_error(ErrorCode::kRemote, "%s: it does not hold our key", kWhat);
  }
  if (!fetched.memory) {
    throw_error(ErrorCode::kSystem,
                "%s: no descriptor came; raise the limit of open files "
                "(ulimit -n)",
                kWhat);
  }
  return fetched;
}

void confirm_mapped(const FetchedMemory& fetched) {
  // A host that is gone by now will not count us, and all-gathered verdicts settle what follows.
  send_message(fetched.visit.get(), ByteView(&kMapped, 1));
}

}  // namespace catenary
