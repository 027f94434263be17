// Stream sockets, TCP or Unix: reading and writing that heeds a Wait, whatever the descriptor's
// mode.
//
// Any thread, one at a time per direction of a socket. Functions that take a Wait may wait; they
// look at its flag at least every 50 ms. They throw Error: kInvalidUsage when cancelled, kTimeout
// at the deadline, kRemote when the peer has closed, kSystem for the rest. None raises SIGPIPE.
#pragma once

#include <string_view>

#include "src/base/clock.h"
#include "src/base/types.h"

namespace catenary {

// No wait goes longer than this without a look at its flag.
inline constexpr int kWaitSliceMs = 50;

// Throws if the wait is over. `what` ends the message: "aborted while <what>".
void check_wait(const Wait& wait, std::string_view what);
// Waits until `fd` is ready for `events` of poll(2), or broken. False: a slice has passed.
bool wait_slice(int fd, short events, const Wait& wait, int most_ms = kWaitSliceMs);

void send_all(int fd, ByteView bytes, const Wait& wait, std::string_view what);
// Fills `bytes`, and reads nothing beyond.
void receive_all(int fd, ByteSpan bytes, const Wait& wait, std::string_view what);

// What one attempt to read or write that never waits has come to.
struct Transfer {
  enum class State { kMoved, kNotYet, kClosed, kBroken } state;
  std::size_t bytes = 0;  // kMoved
  int error_number = 0;   // kBroken
};
Transfer try_send(int fd, ByteView bytes) noexcept;
// Two pieces as if they lay behind each other. If all of them are taken and end a packet, what is
// sent next begins another.
enum class Packet { kGoesOn, kEnds };
Transfer try_send(int fd, ByteView first, ByteView second, Packet packet) noexcept;
Transfer try_receive(int fd, ByteSpan bytes) noexcept;

}  // namespace catenary
