// Shared memory: between ranks of different processes on one machine.
//
// All ranks of a communicator on a machine share one sealed memfd with a ring for each ordered
// pair, so a link is made without a word. Nothing lies in /dev/shm or on any filesystem, no 64 MB
// limit of a container applies, and nothing remains of a killed process. attach() waits, nothing
// else does. Whatever keeps memory from being shared, limits included, is logged and answered with
// "not reached".
//
// The arena is sparse. A slot costs memory, and 2 us per page of 4 KB, when it is first used: a
// link of 16 slots of 64 KB pays 0.5 ms once, spread over its first 16 slots; small messages touch
// one page per link.
#pragma once

#include "src/transport/transport.h"

namespace catenary::shm {

inline constexpr std::string_view kName = "shm";

std::unique_ptr<Transport> make_transport(const TransportContext& context);

}  // namespace catenary::shm
