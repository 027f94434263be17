// Mutual proof of a shared key over a stream socket that is already connected, TCP or Unix.
//
// Both ends call it, one as the initiator (who connected), the other as the acceptor, with the same
// key and purpose; put into `purpose` whatever both must agree on ("shm 3 to 5"). Reads not one
// byte beyond the handshake. Waits, at most until the deadline. Throws Error: kRemote if the peer
// does not hold the key, speaks something else or goes away, kTimeout, kInvalidUsage when
// cancelled. After a throw the socket is only good for closing.
#pragma once

#include <string_view>

#include "src/base/clock.h"
#include "src/bootstrap/handshake.h"

namespace catenary {

// Returns a key that is fresh for this connection and the same at both ends.
Key prove_both(int fd, const Key& key, Side side, std::string_view purpose, const Wait& wait);

}  // namespace catenary
