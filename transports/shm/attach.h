// How the ranks of one machine come to share one arena: the lowest, the leader, makes it and hands
// it out at its door, the others fetch and map it.
//
// Waits, no longer than its Wait. Any failure throws Error; then the rank has no arena.
#pragma once

#include <memory>
#include <vector>

#include "src/transport/memory_door.h"
#include "src/transport/ring_arena.h"

namespace catenary::shm {

// What leader and followers prove to each other.
DoorPact make_pact(const TransportContext& context, const RingArenaShape& shape);

struct Attached {
  std::shared_ptr<const RingArena> arena;
  // Who is there, as far as we know: the leader knows of each, the others of the leader, and take
  // the rest for present until verdicts are compared.
  std::vector<bool> members;
};

// `member`: our place in the group. `door`: our own, closed when done, so that who comes too late
// hears at once. `leader`: the leader's.
Attached attach_arena(const TransportContext& context, int members, int member, UniqueFd door,
                      const DoorName& leader, const Wait& wait);

}  // namespace catenary::shm
