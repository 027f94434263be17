// TCP: between any two ranks; the floor where nothing better reaches.
//
// One connection per link and direction, on the interface that NCCL_SOCKET_IFNAME chooses. Its
// beginning proves the communicator's key at both ends; the data after it is neither encrypted nor
// authenticated, so keep it to networks that are yours. Links are polled. Nothing waits.
#pragma once

#include "src/transport/transport.h"

namespace catenary::tcp {

inline constexpr std::string_view kName = "tcp";

std::unique_ptr<Transport> make_transport(const TransportContext& context);

}  // namespace catenary::tcp
