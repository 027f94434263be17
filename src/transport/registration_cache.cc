#include "src/transport/registration_cache.h"

#include <algorithm>

#include "src/base/error.h"
#include "src/base/log.h"

namespace catenary {

std::shared_ptr<const PutMemory> RegistrationCache::find(ByteView memory) {
  const std::optional<UserBlock> block = find_ ? find_(memory.data()) : std::optional<UserBlock>();
  if (!block) return nullptr;
  const auto offset = static_cast<std::size_t>(memory.data() - block->memory.data());
  if (memory.size() > block->memory.size() - offset) return nullptr;
  auto entry = entries_.find(block->memory.data());
  if (entry == entries_.end() || entry->second.block.number != block->number) {
    if (entry != entries_.end()) entries_.erase(entry);
    make_room();
    entry =
        entries_.emplace(block->memory.data(), Entry{*block, try_register(block->memory)}).first;
  }
  entry->second.used = ++uses_;
  return entry->second.memory;
}

std::shared_ptr<const PutMemory> RegistrationCache::try_register(ByteView memory) const {
  try {
    return port_.register_source(memory);
  } catch (const Error& error) {
    log_info(Subsystem::kNet, -1,
             format("%zu bytes at %p are copied before they are sent: %s", memory.size(),
                    static_cast<const void*>(memory.data()), error.what()));
    return nullptr;
  }
}

// Blocks that are gone give their pages back with this, and not before.
void RegistrationCache::make_room() {
  std::erase_if(entries_, [this](const auto& entry) { return is_gone(entry.second); });
  if (entries_.size() < kMost) return;
  entries_.erase(
      std::ranges::min_element(entries_, {}, [](const auto& entry) { return entry.second.used; }));
}

bool RegistrationCache::is_gone(const Entry& entry) const {
  const std::optional<UserBlock> now = find_(entry.block.memory.data());
  return !now || now->number != entry.block.number;
}

}  // namespace catenary
