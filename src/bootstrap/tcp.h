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

// What has gone wrong with a socket since somebody asked last; 0: nothing.
int pending_error(int fd) noexcept;

// The next caller at a listener that listen_on made; empty, with errno, if there is none.
UnsharedFd accept_next(int listener);

// Small frames go out at once, and a peer that vanishes without a word (power, cable) breaks the
// connection a second after `patience_s`, whether it is idle or has bytes on the way: each needs
// its own option.
void notice_lost_peers(int fd, std::int64_t patience_s) noexcept;

// The same where bytes may lie unread at either end for as long as who reads is late: only what
// happens while none are on the way counts.
void notice_lost_ways(int fd, std::int64_t patience_s) noexcept;
// Of a connection that is being made, before anybody has answered: ten times as long, because a
// listener that is late and has a full queue does not answer either.
void notice_no_answer(int fd, std::int64_t patience_s) noexcept;
// And for a while also those on the way, which are few and are taken by the kernel; 0: no longer.
void notice_lost_bytes(int fd, std::int64_t patience_s) noexcept;

}  // namespace catenary
