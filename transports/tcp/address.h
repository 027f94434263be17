// The address of TCP: where a rank listens, and on which machine.
//
// Any thread; nothing waits.
#pragma once

#include <optional>

#include "src/transport/socket_hub.h"

namespace catenary::tcp {

struct Address {
  SocketAddress socket;
  std::uint64_t machine = 0;  // the same number, the same machine; 0: it does not know
};

Bytes make_address(const Address& address);

// Nullopt for what is no such address.
std::optional<Address> parse_address(ByteView address);

// Of this machine.
std::uint64_t machine_number();

// Whether both are addresses, and of one family.
bool reaches(ByteView address, ByteView peer_address);

}  // namespace catenary::tcp
