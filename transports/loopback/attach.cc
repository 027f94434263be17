#include "transports/loopback/attach.h"

#include <map>
#include <mutex>

#include "src/base/error.h"

namespace catenary::loopback {
namespace {

// Process-wide by nature: it is where the ranks of a process meet. Holds nothing alive.
struct Registry {
  std::mutex mutex;
  std::map<std::array<std::byte, 32>, std::weak_ptr<const RingArena>> arenas;
};

// Never destroyed: ranks may outlive static objects.
Registry& registry() {
  static Registry& instance = *new Registry;
  return instance;
}

}  // namespace

std::shared_ptr<const RingArena> attach_arena(const TransportContext& context, int members) {
  const RingArenaShape shape = arena_shape(context, members);
  Registry& known = registry();
  const std::lock_guard lock(known.mutex);
  std::erase_if(known.arenas, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<const RingArena>& entry = known.arenas[context.key];
  if (std::shared_ptr<const RingArena> arena = entry.lock()) {
    if (arena->shape() == shape) return arena;
    throw_error(ErrorCode::kInvalidUsage,
                "rank %d has %u slots of %zu bytes, other ranks of its process %u of %zu",
                context.rank, shape.ring.slots, shape.ring.slot_bytes, arena->shape().ring.slots,
                arena->shape().ring.slot_bytes);
  }
  auto arena =
      std::make_shared<const RingArena>(Mapping::anonymous(shape.bytes()), shape, /*shared=*/false);
  entry = arena;
  return arena;
}

}  // namespace catenary::loopback
