// How ranks with libfabric come to a hub for their links.
//
// Nothing is proved here, as with TCP: a link proves its peer when its first control message is
// answered, and throws if it cannot. Nothing waits.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "src/transport/put_hub.h"
#include "src/transport/socket_hub.h"
#include "transports/ofi/port.h"
#include "transports/ofi/transport.h"

namespace catenary::ofi {

// Completions that may come before somebody looks: all that all peers may put at once, as far as a
// queue can be that long.
std::size_t event_room(const TransportContext& context);

// `rails`: one, or several to stripe over. Each meets one of every peer.
std::unique_ptr<PutHub> attach_hub(const TransportContext& context,
                                   std::vector<std::unique_ptr<OfiPort>> rails,
                                   std::span<const Bytes> addresses, ByteView own,
                                   const PortDecorator& decorate);

// What both ends of a connection that watches a way must hold.
Key key_beside(const TransportContext& context);
// Where the ways to what our rail meets can be watched, by rank, as far as ranks say so.
std::vector<std::optional<SocketAddress>> places_beside(std::span<const Bytes> addresses,
                                                        std::size_t rail);

}  // namespace catenary::ofi
