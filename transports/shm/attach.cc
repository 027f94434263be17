#include "transports/shm/attach.h"

#include "src/base/error.h"

namespace catenary::shm {

DoorPact make_pact(const TransportContext& context, const RingArenaShape& shape) {
  return {
      derive_key(context.key, "shm"),
      format(
          "%u slots of %zu bytes for %d ranks (CATENARY_SLOTS, CATENARY_SLOT_BYTES), laid out in "
          "form %d (by this version of the library)",
          shape.ring.slots, shape.ring.slot_bytes, shape.members, SlotRingShape::kForm)};
}

Attached attach_arena(const TransportContext& context, int members, int member, UniqueFd door,
                      const DoorName& leader, const Wait& wait) {
  const RingArenaShape shape = arena_shape(context, members);
  const DoorPact pact = make_pact(context, shape);
  if (member == 0) {
    const UniqueFd memory = create_memfd("catenary", shape.bytes());
    Mapping mapping = Mapping::shared(memory.get(), shape.bytes());
    std::vector<bool> present = hand_out(door.get(), memory.get(), members, pact, wait);
    return {std::make_shared<const RingArena>(std::move(mapping), shape, /*shared=*/true),
            std::move(present)};
  }
  // Nobody knocks here; the descriptor is better used for fetching.
  door.reset();
  const FetchedMemory fetched = fetch_memory(leader, member, pact, wait);
  check_memfd(fetched.memory.get(), shape.bytes());
  Mapping mapping = Mapping::shared(fetched.memory.get(), shape.bytes());
  confirm_mapped(fetched);
  return {std::make_shared<const RingArena>(std::move(mapping), shape, /*shared=*/true),
          std::vector<bool>(static_cast<std::size_t>(members), true)};
}

}  // namespace catenary::shm
