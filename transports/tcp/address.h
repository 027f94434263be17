// The address of TCP: where a rank listens.
//
// Any thread; nothing waits.
#pragma once

#include <optional>

#include "src/transport/socket_hub.h"

namespace catenary::tcp {

Bytes make_address(const SocketAddress& address);

// Nullopt for what is no such address.
std::optional<SocketAddress> parse_address(ByteView address);

// Whether both are addresses, and of one family.
bool reaches(ByteView address, ByteView peer_address);

}  // namespace catenary::tcp
