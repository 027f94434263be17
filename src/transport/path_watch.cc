#include "src/transport/path_watch.h"

#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "src/base/error.h"
#include "src/base/log.h"
#include "src/bootstrap/stream_socket.h"
#include "src/bootstrap/tcp.h"
#include "src/transport/transport.h"

namespace catenary {
namespace {

constexpr std::int64_t kLookEvery_ns = 100'000'000;
// A rank that looks so rarely has done something else meanwhile, and what happened to a connection
// that it was making then is no news.
constexpr std::int64_t kLongAgo_ns = 1'000'000'000;
// For a connection that is made anew: one lost packet is repeated after a second.
constexpr std::int64_t kRedialWait_ms = 1500;
// A connection that is cut off in the handshake is made anew at once so often, and then now and
// then.
constexpr int kCutsInARow = 20;
constexpr int kPauseAfterCuts_ms = 2000;
constexpr int kAcceptsAtOnce = 256;
// Who is refused, and has heard nothing, tries again so often, for so many times the patience.
constexpr int kPauseAfterRefusal_ms = 500;
constexpr int kPatiencesRefused = 2;
// Longer than a message takes from one host to another and back.
constexpr int kFirstWait_ms = 2;

short events_of(int socket, int wanted, int wait_ms = 0) {
  pollfd state = {socket, static_cast<short>(wanted), 0};
  return ::poll(&state, 1, wait_ms) > 0 ? state.revents : short{0};
}

// What a host says that is there.
bool is_answer(int error_number) {
  return error_number == ECONNREFUSED || error_number == ECONNRESET || error_number == EPIPE;
}

// What says something about this process or host, and nothing about the way.
bool is_own_trouble(int error_number) {
  return error_number == EMFILE || error_number == ENFILE || error_number == ENOBUFS ||
         error_number == ENOMEM || error_number == EADDRNOTAVAIL;
}

// Whether the kernel at the other end has taken what was said, also if it is silent by now. One
// that has no room for a connection takes nothing, though ours calls it connected.
bool has_arrived(const UnsharedFd& socket, const LinkHandshake& handshake) {
  int untaken = 0;
  return handshake.has_spoken() && ::ioctl(socket.get(), SIOCOUTQ, &untaken) == 0 && untaken == 0;
}

// A place's own, so that what is said at one is no use at another.
Key key_at(const SocketAddress& place, const Key& key) {
  return derive_key(key, "way", std::as_bytes(std::span(&place.port, 1)));
}

}  // namespace

PathWatch::PathWatch(int rank, const Key& key, SocketListener listener,
                     std::vector<std::optional<SocketAddress>> peers, std::int64_t patience_s,
                     std::function<bool(int peer)> has_come)
    : rank_(rank),
      key_(key),
      listener_(std::move(listener)),
      peers_(std::move(peers)),
      patience_s_(patience_s),
      has_come_(std::move(has_come)),
      // Members may come all at once, before any has said a word.
      lobby_({.door = Refused::kWatch,
              .rank = rank,
              .nranks = static_cast<int>(peers_.size()),
              .key = key_at(listener_.address, key),
              .most_strangers = kMostStrangers + peers_.size(),
              .patience_s = patience_s},
             [this](const LinkIntroduction&, UnsharedFd socket) {
               watchers_.push_back(std::move(socket));
             }) {}

void PathWatch::watch(int peer) {
  if (peer == rank_ || !peers_[static_cast<std::size_t>(peer)]) return;
  const std::lock_guard lock(mutex_);
  const auto [entry, is_new] = paths_.try_emplace(peer);
  if (is_new) dial(peer, entry->second);
}

void PathWatch::dial(int peer, Path& path) const {
  const SocketAddress& address = *peers_[static_cast<std::size_t>(peer)];
  path.state = State::kToDial;
  path.handshake.reset();
  if (!path.is_given_up) path.was_reached = false;
  path.socket = UnsharedFd::made_by(
      [&] { return ::socket(address.family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0); });
  if (!path.socket) return;  // tried again at the next look
  notice_lost_ways(path.socket.get(), patience_s_);
  notice_no_answer(path.socket.get(), patience_s_);
  const SocketAddress::Raw raw = address.raw();
  if (::connect(path.socket.get(), raw.get(), raw.bytes) == 0 || errno == EINPROGRESS) {
    path.state = State::kDialing;
    path.handshake = LinkHandshake::initiate(
        key_at(address, key_),
        {static_cast<std::uint32_t>(rank_), static_cast<std::uint32_t>(peer), 0});
    // This rank may have other things to do next, and who accepts takes one that says nothing for a
    // stranger. A host that is there answers at once, whatever its ranks do.
    if (events_of(path.socket.get(), POLLOUT, kFirstWait_ms) == POLLOUT) {
      path.handshake->advance(path.socket.get());
    }
    if (path.is_given_up && !path.until) path.until = Deadline::after_ms(kRedialWait_ms);
  } else {
    failed(peer, path, errno);
  }
}

void PathWatch::check() {
  const std::lock_guard lock(mutex_);
  const std::int64_t now = now_ns();
  if (now - looked_ns_ < kLookEvery_ns) return;
  const bool was_away = now - looked_ns_ > kLongAgo_ns;
  looked_ns_ = now;
  attend_guests();
  for (auto& [peer, path] : paths_) {
    if (path.is_given_up && was_away) {
      path.until.reset();
      dial(peer, path);
    } else if (path.state != State::kUnwatched) {
      look(peer, path);
    }
  }
}

void PathWatch::look(int peer, Path& path) const {
  if (path.state == State::kToDial) {
    if (path.pause.passed()) dial(peer, path);
    return;
  }
  const short events =
      events_of(path.socket.get(), path.state == State::kDialing ? POLLOUT : POLLIN);
  if (events == 0) {
    if (path.until && path.until->passed())
      throw LostConnection(rank_, peer, "its host does not answer");
    return;
  }
  if (const int number = pending_error(path.socket.get())) return failed(peer, path, number);
  if (path.state == State::kDialing) {
    path.state = State::kGreeting;
    path.was_connected = true;
    path.was_reached = path.is_given_up = false;
    path.until.reset();
    // Not before: a listener that is late may have no room for who connects, and does not answer.
    notice_lost_bytes(path.socket.get(), patience_s_);
  }
  if (path.state == State::kGreeting) return greet(path);
  std::byte word{};  // nobody says any
  const Transfer heard = try_receive(path.socket.get(), ByteSpan(&word, 1));
  if (heard.state == Transfer::State::kClosed) path.forget();
}

void PathWatch::greet(Path& path) const {
  path.note_reach();
  const LinkHandshake::State state = path.handshake->advance(path.socket.get());
  if (state == LinkHandshake::State::kBusy) return;
  path.handshake.reset();
  if (state == LinkHandshake::State::kFailed) return cut_off(path);
  path.state = State::kThere;
  path.cuts = 0;
}

// By a peer that is pressed by strangers, by somebody else on the way, or by one that is gone: then
// the next attempt is refused. The way is there in any case.
void PathWatch::cut_off(Path& path) const {
  path.state = State::kToDial;
  path.socket = UnsharedFd();
  path.is_given_up = false;
  path.until.reset();
  path.pause = Deadline::after_ms(++path.cuts < kCutsInARow ? 0 : kPauseAfterCuts_ms);
}

void PathWatch::failed(int peer, Path& path, int error_number) const {
  path.note_reach();
  const bool was_accepted = error_number == ECONNRESET || error_number == EPIPE;
  if (was_accepted && path.state != State::kThere) return cut_off(path);
  const bool is_there = path.was_connected || has_come_(peer);
  if (is_answer(error_number)) {
    return is_there ? path.forget() : refused(peer, path, error_number);
  }
  if (is_there && !path.was_connected) return do_without(peer, path, error_number);
  const bool was_made = path.state == State::kThere || path.state == State::kGreeting;
  path.state = State::kToDial;
  path.socket = UnsharedFd();
  if (path.was_reached && !is_own_trouble(error_number)) path.is_given_up = true;
  if (was_made) return dial(peer, path);
  // What a router or a filter says of a way on which nothing ever got through is no proof: a peer
  // that is late has not shown yet that the network does. That nobody says anything for as long as
  // the system tries is.
  const bool is_over =
      path.was_reached ? path.until && path.until->passed() : error_number == ETIMEDOUT;
  if (is_over) throw LostConnection(rank_, peer, errno_text(error_number));
  if (path.is_given_up && !path.until && !is_own_trouble(error_number)) {
    path.until = Deadline::after_ms(kRedialWait_ms);
  }
}

void PathWatch::do_without(int peer, Path& path, int error_number) const {
  log_notice(-1,
             format("rank %d cannot watch the way to rank %d: connecting to %s: %s; should that "
                    "way be lost, nobody will notice",
                    rank_, peer, peers_[static_cast<std::size_t>(peer)]->text().c_str(),
                    errno_text(error_number).c_str()));
  path.forget();
}

// Its host, or another one that has the same address: the network does not tell which it asks.
// Counted are looks, as what has come is seen only by who looks.
void PathWatch::refused(int peer, Path& path, int error_number) const {
  path.state = State::kToDial;
  path.socket = UnsharedFd();
  path.pause = Deadline::after_ms(kPauseAfterRefusal_ms);
  const std::int64_t refused_ms = std::int64_t{path.refusals++} * kPauseAfterRefusal_ms;
  if (refused_ms < patience_s_ * 1000 * kPatiencesRefused) return;
  throw LostConnection(
      rank_, peer,
      format("nothing comes from there, and connecting to %s fails: %s; is that an interface "
             "of that rank's host which this one reaches? NCCL_SOCKET_IFNAME chooses it",
             peers_[static_cast<std::size_t>(peer)]->text().c_str(),
             errno_text(error_number).c_str()));
}

void PathWatch::Path::note_reach() {
  if (!handshake || !has_arrived(socket, *handshake)) return;
  was_connected = true;
  was_reached = true;
}

void PathWatch::attend_guests() {
  std::erase_if(watchers_, [](const UnsharedFd& socket) {
    return events_of(socket.get(), POLLIN | POLLRDHUP) != 0;
  });
  lobby_.serve(listener_.socket.get(), kAcceptsAtOnce);
}

}  // namespace catenary
