// The address of libfabric: the provider, whose peers must have the same one, and the name of the
// endpoint in the provider's own words. And where to connect to beside it
// (src/transport/path_watch.h).
//
// Any thread; nothing waits.
#pragma once

#include <optional>
#include <string>

#include "src/base/types.h"
#include "src/transport/socket_hub.h"

namespace catenary::ofi {

struct Address {
  std::string provider;
  std::uint32_t format = 0;  // of the name
  std::string machine;       // that both must be on; empty if they need not be on one
  Bytes name;
  std::optional<SocketAddress> beside;  // where the ways to this host can be watched
};

Bytes make_address(const Address& address);

// Nullopt for what is no such address, as a rank without libfabric has.
std::optional<Address> parse_address(ByteView address);

// Whether both are addresses of one provider, in one format.
bool reaches(ByteView address, ByteView peer_address);

// The machine that peers must be on as well; empty unless the provider stays on it.
std::string machine_for(const std::string& provider);

}  // namespace catenary::ofi
