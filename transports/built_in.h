// The one list of transports. Whoever adds one adds a line to built_in.cc.
#pragma once

#include <string>

#include "src/transport/transport.h"

namespace catenary {

// The transports, a line each, and whether they work here. Opens them.
std::string describe_transports(const Config& config);

// The transports that the configuration allows, best first. Throws kInvalidUsage if
// CATENARY_TRANSPORTS names one that does not exist. Nothing waits.
Transports built_in_transports(const TransportContext& context);

}  // namespace catenary
