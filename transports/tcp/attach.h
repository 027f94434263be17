// How ranks of different machines come to a hub for their links.
//
// Nothing is proved here: a connection for each pair of ranks, used or not, would cost too many
// sockets, and below TCP there is nothing to fall back to. So each link proves its peer when it
// connects, and throws if it cannot. Nothing waits.
#pragma once

#include <memory>

#include "src/transport/socket_hub.h"

namespace catenary::tcp {

std::unique_ptr<SocketHub> attach_hub(const TransportContext& context, UnsharedFd listener,
                                      std::span<const Bytes> addresses);

}  // namespace catenary::tcp
