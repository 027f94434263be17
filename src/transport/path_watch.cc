#include "src/transport/path_watch.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "src/base/error.h"
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

short events_of(int socket, int wanted) {
  pollfd state = {socket, static_cast<short>(wanted), 0};
  return ::poll(&state, 1, 0) > 0 ? state.revents : short{0};
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

}  // namespace

PathWatch::PathWatch(int rank, SocketListener listener,
                     std::vector<std::optional<SocketAddress>> peers, std::int64_t patience_s,
                     std::function<bool(int peer)> has_come)
    : rank_(rank),
      listener_(std::move(listener)),
      peers_(std::move(peers)),
      patience_s_(patience_s),
      has_come_(std::move(has_come)) {}

void PathWatch::watch(int peer) {
  if (peer == rank_ || !peers_[static_cast<std::size_t>(peer)]) return;
  const std::lock_guard lock(mutex_);
  const auto [entry, is_new] = paths_.try_emplace(peer);
  if (is_new) dial(peer, entry->second);
}

void PathWatch::dial(int peer, Path& path) const {
  const SocketAddress& address = *peers_[static_cast<std::size_t>(peer)];
  path.state = State::kToDial;
  path.socket = UniqueFd(::socket(address.family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!path.socket) return;  // tried again at the next look
  notice_lost_ways(path.socket.get(), patience_s_);
  const SocketAddress::Raw raw = address.raw();
  if (::connect(path.socket.get(), raw.get(), raw.bytes) == 0 || errno == EINPROGRESS) {
    path.state = State::kDialing;
    if (path.was_there && !path.until) path.until = Deadline::after_ms(kRedialWait_ms);
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
    const bool is_made_anew =
        path.was_there && (path.state == State::kToDial || path.state == State::kDialing);
    if (is_made_anew && was_away) {
      path.until.reset();
      dial(peer, path);
    } else if (path.state != State::kUnwatched) {
      look(peer, path);
    }
  }
}

void PathWatch::look(int peer, Path& path) const {
  if (path.state == State::kToDial) return dial(peer, path);
  const short events =
      events_of(path.socket.get(), path.state == State::kDialing ? POLLOUT : POLLIN);
  if (events == 0) {
    if (path.until && path.until->passed()) throw_lost(rank_, peer, "its host does not answer");
    return;
  }
  if (const int number = pending_error(path.socket.get())) return failed(peer, path, number);
  if (path.state == State::kDialing) {
    path.state = State::kGreeting;
    path.was_connected = true;
    path.until.reset();
  }
  if (!hear(path)) return;
  path.state = State::kThere;
  path.was_there = true;
}

bool PathWatch::hear(Path& path) const {
  std::byte word{};
  const Transfer heard = try_receive(path.socket.get(), ByteSpan(&word, 1));
  if (heard.state == Transfer::State::kClosed) path.forget();
  return heard.state == Transfer::State::kMoved && path.state == State::kGreeting;
}

void PathWatch::failed(int peer, Path& path, int error_number) const {
  if (is_answer(error_number) || (!path.was_connected && has_come_(peer))) return path.forget();
  const bool was_made = path.state == State::kThere || path.state == State::kGreeting;
  path.state = State::kToDial;
  path.socket.reset();
  if (was_made) return dial(peer, path);
  // What a router or a filter says of a connection that never was is no proof: a peer that is late
  // has not shown yet that the network gets through to it. That nobody says anything for as long as
  // the system tries is.
  const bool is_over =
      path.was_there ? path.until && path.until->passed() : error_number == ETIMEDOUT;
  if (is_over) throw_lost(rank_, peer, errno_text(error_number));
  if (path.was_there && !path.until && !is_own_trouble(error_number)) {
    path.until = Deadline::after_ms(kRedialWait_ms);
  }
}

// Says the one byte to those that have come, and lets go of those that have gone.
void PathWatch::attend_guests() {
  std::erase_if(guests_, [](const UnsharedFd& guest) {
    return events_of(guest.get(), POLLIN | POLLRDHUP) != 0;
  });
  while (UnsharedFd guest = accept_next(listener_.socket.get())) {
    const std::byte word{1};
    if (guests_.size() >= 2 * peers_.size()) continue;
    notice_lost_ways(guest.get(), patience_s_);
    // A socket that is new takes a byte.
    if (try_send(guest.get(), ByteView(&word, 1)).state != Transfer::State::kMoved) continue;
    guests_.push_back(std::move(guest));
  }
}

}  // namespace catenary
