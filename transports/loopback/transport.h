// Loopback: between ranks of one process, itself included, through memory of that process.
//
// The template for new transports: see transports/README.md. Nothing waits.
#pragma once

#include "src/transport/transport.h"

namespace catenary::loopback {

inline constexpr std::string_view kName = "loopback";

std::unique_ptr<Transport> make_transport(const TransportContext& context);

}  // namespace catenary::loopback
