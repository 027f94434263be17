// TCP: listening, connecting, accepting, and noticing that the other host is gone, or the way to
// it.
//
// All sockets are non-blocking, closed on exec, and never seen by a forked child. Only connect_once
// waits. Fails with Error(kSystem).
#pragma once

#include "src/base/clock.h"
#include "src/bootstrap/socket_address.h"
#include "src/bootstrap/unshared_fd.h"

namespace catenary {

// Listens on exactly that address; port 0: any free one, which is put into `address`.
UnsharedFd listen_on(SocketAddress& address);

// One attempt; an empty descriptor and the errno if it fails. Throws when the wait is over.
struct Connection {
  UnsharedFd fd;
  int error_number = 0;
};
Connection connect_once(const SocketAddress& address, const Wait& wait);

// The next caller at a listener that listen_on made; empty, with errno, if there is none.
UnsharedFd accept_next(int listener);

// Small frames go out at once, and a peer that vanishes without a word (power, cable) breaks the
// connection a second after `patience_s`, whether it is idle or has bytes on the way: each needs
// its own option.
void notice_lost_peers(int fd, std::int64_t patience_s) noexcept;

// The same for the end of a connection that only receives: the other end may have bytes on the way
// for as long as we read none.
void notice_lost_sender(int fd, std::int64_t patience_s) noexcept;

// Before connecting: when nobody answers at all, not even to refuse, that is told after
// `patience_s` and before twice that and a second.
void notice_no_answer(int fd, std::int64_t patience_s) noexcept;

}  // namespace catenary
