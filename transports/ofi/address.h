// The address of libfabric: the provider, whose peers must have the same one, and of each rail
// (src/transport/striped_port.h) the name of its endpoint in the provider's own words. And where to
// connect to beside it (src/transport/path_watch.h).
//
// Any thread; nothing waits.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/base/types.h"
#include "src/transport/socket_hub.h"

namespace catenary::ofi {

struct RailAddress {
  Bytes name;
  std::optional<SocketAddress> beside;  // where the way to it can be watched
};

struct Address {
  std::string provider;
  std::uint32_t format = 0;        // of the names
  bool has_seals = false;          // whether what puts tell is sealed
  std::string machine;             // that both must be on; empty if they need not be on one
  std::vector<RailAddress> rails;  // one, or up to kMostRails
  // What a peer's rail is to meet, if it has another number of them.
  const RailAddress& met_by(std::size_t rail) const { return rails[rail % rails.size()]; }
};

Bytes make_address(const Address& address);

// Nullopt for what is no such address, as a rank without libfabric has.
std::optional<Address> parse_address(ByteView address);

// Whether both are addresses of one provider, in one format, that both seal or neither.
bool reaches(ByteView address, ByteView peer_address);

// The machine, and its folder of shared memory, that peers must have as well; empty unless the
// provider stays there.
std::string machine_for(const std::string& provider);

}  // namespace catenary::ofi
