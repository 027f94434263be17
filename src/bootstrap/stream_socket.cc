#include "src/bootstrap/stream_socket.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cerrno>
#include <string>

#include "src/base/error.h"

namespace catenary {
namespace {

Transfer transferred(ssize_t result, bool reading) noexcept {
  using State = Transfer::State;
  if (result > 0) return {State::kMoved, static_cast<std::size_t>(result)};
  if (result == 0) return {reading ? State::kClosed : State::kNotYet};
  if (errno == EAGAIN || errno == EWOULDBLOCK) return {State::kNotYet};
  return {State::kBroken, 0, errno};
}

// Moves all of `total` bytes, `attempt(done)` at a time.
template <typename Attempt>
void move_all(int fd, std::size_t total, short events, const Wait& wait, std::string_view what,
              const Attempt& attempt) {
  for (std::size_t done = 0; done < total;) {
    const Transfer transfer = attempt(done);
    switch (transfer.state) {
      case Transfer::State::kMoved: done += transfer.bytes; break;
      case Transfer::State::kNotYet:
        check_wait(wait, what);
        wait_slice(fd, events, wait);
        break;
      case Transfer::State::kClosed:
        throw Error(ErrorCode::kRemote, std::string(what) + ": the peer closed the connection");
      case Transfer::State::kBroken:
        throw Error(ErrorCode::kRemote,
                    std::string(what) + ": " + errno_text(transfer.error_number));
    }
  }
}

}  // namespace

void check_wait(const Wait& wait, std::string_view what) {
  if (wait.is_cancelled()) {
    throw Error(ErrorCode::kInvalidUsage, "aborted while " + std::string(what));
  }
  if (wait.deadline.passed()) {
    throw Error(ErrorCode::kTimeout, "timed out while " + std::string(what));
  }
}

bool wait_slice(int fd, short events, const Wait& wait, int most_ms) {
  pollfd entry = {fd, events, 0};
  const int ready = ::poll(&entry, 1, wait.deadline.remaining_ms(most_ms));
  if (ready < 0 && errno != EINTR) throw_system_error("poll", errno);
  return ready > 0;
}

void send_all(int fd, ByteView bytes, const Wait& wait, std::string_view what) {
  move_all(fd, bytes.size(), POLLOUT, wait, what,
           [&](std::size_t done) { return try_send(fd, bytes.subspan(done)); });
}

void receive_all(int fd, ByteSpan bytes, const Wait& wait, std::string_view what) {
  move_all(fd, bytes.size(), POLLIN, wait, what,
           [&](std::size_t done) { return try_receive(fd, bytes.subspan(done)); });
}

Transfer try_send(int fd, ByteView bytes) noexcept {
  ssize_t result = 0;
  do {
    result = ::send(fd, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  } while (result < 0 && errno == EINTR);
  return transferred(result, false);
}

Transfer try_send(int fd, ByteView first, ByteView second, Packet packet) noexcept {
  if (second.empty() && packet == Packet::kGoesOn) return try_send(fd, first);  // the cheaper call
  const auto piece = [](ByteView bytes) {
    return iovec{const_cast<std::byte*>(bytes.data()), bytes.size()};  // which only reads change
  };
  std::array<iovec, 2> pieces = {piece(first), piece(second)};
  msghdr message = {};
  message.msg_iov = pieces.data();
  message.msg_iovlen = pieces.size();
  const int flags = MSG_DONTWAIT | MSG_NOSIGNAL | (packet == Packet::kEnds ? MSG_EOR : 0);
  ssize_t result = 0;
  do {
    result = ::sendmsg(fd, &message, flags);
  } while (result < 0 && errno == EINTR);
  return transferred(result, false);
}

Transfer try_receive(int fd, ByteSpan bytes) noexcept {
  ssize_t result = 0;
  do {
    result = ::recv(fd, bytes.data(), bytes.size(), MSG_DONTWAIT);
  } while (result < 0 && errno == EINTR);
  return transferred(result, true);
}

}  // namespace catenary
