#include "src/device/announced_buffer.h"

#include <mutex>
#include <shared_mutex>
#include <vector>

namespace catenary {
namespace {

struct Announced {
  std::shared_mutex mutex;
  std::vector<AnnouncedBuffer::Found> all;
  std::uint64_t last_number = 0;
};

// Never destroyed: handles that hold some are not either.
Announced& announced() {
  static auto* const made = new Announced;
  return *made;
}

}  // namespace

AnnouncedBuffer::AnnouncedBuffer(const void* base, std::size_t bytes) {
  const std::unique_lock lock(announced().mutex);
  number_ = ++announced().last_number;
  announced().all.push_back({{static_cast<const std::byte*>(base), bytes}, number_});
}

AnnouncedBuffer::~AnnouncedBuffer() {
  const std::unique_lock lock(announced().mutex);
  std::erase_if(announced().all, [this](const Found& found) { return found.number == number_; });
}

std::optional<AnnouncedBuffer::Found> AnnouncedBuffer::find(const void* pointer) {
  const std::shared_lock lock(announced().mutex);
  std::optional<Found> longest;
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  for (const Found& one : announced().all) {
    const std::uintptr_t inside = address - reinterpret_cast<std::uintptr_t>(one.memory.data());
    if (inside >= one.memory.size()) continue;
    if (!longest || one.memory.size() > longest->memory.size()) longest = one;
  }
  return longest;
}

}  // namespace catenary
