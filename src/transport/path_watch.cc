#include "src/transport/path_watch.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "src/base/error.h"
#include "src/bootstrap/tcp.h"
#include "src/transport/transport.h"

namespace catenary {
namespace {

constexpr std::int64_t kLookEvery_ms = 100;
constexpr std::int64_t kLeastRedial_ms = 500;

int pending_error(int socket) {
  int number = 0;
  socklen_t bytes = sizeof number;
  return ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &number, &bytes) == 0 ? number : errno;
}

// What a host says that is there; everything else is said by nobody, or by routers on the way.
bool is_answer(int error_number) {
  return error_number == 0 || error_number == ECONNREFUSED || error_number == ECONNRESET ||
         error_number == EPIPE;
}

}  // namespace

PathWatch::PathWatch(int rank, SocketListener listener,
                     std::vector<std::optional<SocketAddress>> peers, std::int64_t patience_s)
    : rank_(rank),
      listener_(std::move(listener)),
      peers_(std::move(peers)),
      patience_s_(patience_s) {}

// What cannot be begun at all is this host's affair, and no lost way.
void PathWatch::watch(int peer) {
  if (peer == rank_ || !peers_[static_cast<std::size_t>(peer)]) return;
  const std::lock_guard lock(mutex_);
  const auto [entry, is_new] = paths_.try_emplace(peer);
  if (is_new && dial(peer, entry->second) != 0) entry->second.forget();
}

int PathWatch::dial(int peer, Path& path) const {
  const SocketAddress& address = *peers_[static_cast<std::size_t>(peer)];
  path.socket = UniqueFd(::socket(address.family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!path.socket) return errno;
  notice_lost_ways(path.socket.get(), patience_s_);
  const SocketAddress::Raw raw = address.raw();
  const bool is_on_its_way =
      ::connect(path.socket.get(), raw.get(), raw.bytes) == 0 || errno == EINPROGRESS;
  return is_on_its_way ? 0 : errno;
}

void PathWatch::check() {
  const std::lock_guard lock(mutex_);
  if (!next_look_.passed()) return;
  next_look_ = Deadline::after_ms(kLookEvery_ms);
  make_room();
  for (auto& [peer, path] : paths_) {
    if (path.is_watched()) look(peer, path);
  }
}

// In the queue of the listener, where they are as good, but where those that come later might find
// no room and get no answer.
void PathWatch::make_room() {
  while (UnsharedFd guest = accept_next(listener_.socket.get())) {
    if (guests_.size() == peers_.size()) guests_.pop_front();
    guests_.push_back(std::move(guest));
  }
}

void PathWatch::look(int peer, Path& path) const {
  if (!path.socket) {
    if (const int error_number = dial(peer, path)) failed(peer, path, error_number);
    return;
  }
  pollfd state = {path.socket.get(), static_cast<short>(POLLIN | (path.is_there ? 0 : POLLOUT)), 0};
  if (::poll(&state, 1, 0) <= 0) {
    if (path.until && path.until->passed()) throw_lost(rank_, peer, "its host does not answer");
    return;
  }
  const int error_number = pending_error(path.socket.get());
  const bool is_over = error_number != 0 || (state.revents & (POLLHUP | POLLIN)) != 0;
  if (is_over) return failed(peer, path, error_number);
  path.is_there = true;
  path.until.reset();
}

// The system has tried for long to make a connection that never was.
void PathWatch::failed(int peer, Path& path, int error_number) const {
  if (is_answer(error_number)) return path.forget();
  const bool is_over = path.until ? path.until->passed() : !path.is_there;
  if (is_over) throw_lost(rank_, peer, errno_text(error_number));
  if (!path.until) {
    path.until = Deadline::after_ms(std::max(kLeastRedial_ms, patience_s_ * 500));
  }
  path.is_there = false;
  path.socket.reset();  // made anew at the next look
}

}  // namespace catenary
