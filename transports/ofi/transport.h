// libfabric: between ranks of different machines, over EFA, verbs or TCP; which provider, and how
// to ask for another, is in provider.h.
//
// A control message proves the communicator's key before any memory is given away; the data is
// neither encrypted nor authenticated, so keep it to networks that are yours. Links are polled.
// Nothing waits. A machine without libfabric, or without a provider, is reached by nobody, and
// another transport takes over, unless libfabric was asked for: then that is an error.
#pragma once

#include <functional>

#include "src/transport/put_port.h"
#include "src/transport/transport.h"

namespace catenary::ofi {

inline constexpr std::string_view kName = "ofi";

// Why this library was built without, or null.
const char* absence() noexcept;
// Throws kInvalidUsage if it was built without.
std::unique_ptr<Transport> make_transport(const TransportContext& context);
// With something around its port, such as faults.
using PortDecorator = std::function<std::unique_ptr<PutPort>(std::unique_ptr<PutPort>)>;
std::unique_ptr<Transport> make_decorated_transport(const TransportContext& context,
                                                    const PortDecorator& decorate);

}  // namespace catenary::ofi
