// How ranks of one process find the memory that they share.
//
// Any thread; nothing waits. Failure to map the memory throws kSystem.
#pragma once

#include <memory>

#include "src/transport/ring_arena.h"

namespace catenary::loopback {

// The arena of this communicator in this process, made by whichever rank comes first. It lives as
// long as anyone holds it.
std::shared_ptr<const RingArena> attach_arena(const TransportContext& context, int members);

}  // namespace catenary::loopback
