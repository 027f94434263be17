#include "src/bootstrap/tcp.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>

#include "src/base/error.h"
#include "src/base/rounding.h"
#include "src/bootstrap/stream_socket.h"

namespace catenary {
namespace {

constexpr int kBacklog = 4096;
constexpr int kMostProbes = 100;  // the kernel takes 127

void set_option(int fd, int level, int option, int value) noexcept {
  // Only fails for options that the system lacks; then its own defaults must do.
  ::setsockopt(fd, level, option, &value, sizeof value);
}

UnsharedFd make_socket(int family) {
  UnsharedFd fd = UnsharedFd::made_by(
      [&] { return ::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0); });
  if (!fd) throw_system_error("socket", errno);
  return fd;
}

// A socket that connects to a free port of its own host may be given that very port, and then talks
// to itself.
bool is_connected_to_itself(int fd) {
  SocketAddress::Raw mine;
  SocketAddress::Raw peer;
  mine.bytes = peer.bytes = sizeof mine.storage;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&mine.storage), &mine.bytes) != 0 ||
      ::getpeername(fd, reinterpret_cast<sockaddr*>(&peer.storage), &peer.bytes) != 0) {
    return false;
  }
  return SocketAddress::from(mine.get()) == SocketAddress::from(peer.get());
}

}  // namespace

UnsharedFd listen_on(SocketAddress& address) {
  UnsharedFd fd = make_socket(address.family);
  set_option(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  SocketAddress::Raw raw = address.raw();
  if (::bind(fd.get(), raw.get(), raw.bytes) != 0 || ::listen(fd.get(), kBacklog) != 0) {
    throw_system_error("cannot listen on " + address.text(), errno);
  }
  raw.bytes = sizeof raw.storage;
  if (::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&raw.storage), &raw.bytes) != 0) {
    throw_system_error("getsockname", errno);
  }
  address.port = SocketAddress::from(raw.get())->port;
  return fd;
}

Connection connect_once(const SocketAddress& address, const Wait& wait) {
  UnsharedFd fd = make_socket(address.family);
  const SocketAddress::Raw raw = address.raw();
  // Interrupted by a signal, it goes on by itself just as if it had not waited.
  if (::connect(fd.get(), raw.get(), raw.bytes) != 0 && errno != EINPROGRESS && errno != EINTR) {
    return {UnsharedFd(), errno};
  }
  do {
    check_wait(wait, "connecting to " + address.text());
  } while (!wait_slice(fd.get(), POLLOUT, wait));
  if (const int error_number = pending_error(fd.get()); error_number != 0) {
    return {UnsharedFd(), error_number};
  }
  if (is_connected_to_itself(fd.get())) return {UnsharedFd(), ECONNREFUSED};
  return {std::move(fd)};
}

int pending_error(int fd) noexcept {
  int error_number = 0;
  socklen_t bytes = sizeof error_number;
  if (::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error_number, &bytes) != 0) return errno;
  return error_number;
}

UnsharedFd accept_next(int listener) {
  return UnsharedFd::made_by(
      [&] { return ::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC); });
}

void notice_lost_peers(int fd, std::int64_t patience_s) noexcept {
  set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  notice_lost_ways(fd, patience_s);
  notice_lost_bytes(fd, patience_s);
}

void notice_lost_ways(int fd, std::int64_t patience_s) noexcept {
  const int seconds = static_cast<int>(patience_s);
  set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, 1);
  const int interval = divide_up(seconds, kMostProbes);
  set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, interval);
  set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, divide_up(seconds, interval));
}

void notice_no_answer(int fd, std::int64_t patience_s) noexcept {
  set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(patience_s) * 10'000);
}

// A second more, since the kernel counts from what it heard last: on an idle connection the answer
// to a probe, up to a second before the way was lost.
void notice_lost_bytes(int fd, std::int64_t patience_s) noexcept {
  const int seconds = patience_s == 0 ? 0 : static_cast<int>(patience_s) + 1;
  set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, seconds * 1000);
}

}  // namespace catenary
