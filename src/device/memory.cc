#include "src/device/memory.h"

#include <sys/mman.h>

#include <bit>
#include <cerrno>
#include <mutex>

#include "src/base/error.h"
#include "src/device/device_error.h"
#include "src/device/process_life.h"
#include "src/topology/machine.h"

namespace catenary {
namespace {

constexpr std::size_t kPageBytes = 4096;
constexpr std::size_t kGiveBackBytes = 65536;  // smaller ones are not worth the system call

constexpr std::size_t round_up(std::size_t value, std::size_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

std::uintptr_t address_of(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

// A memfd may be larger than all memory, and would end in SIGBUS where it is touched.
void check_machine_has(std::size_t bytes) {
  static const std::size_t total_bytes = machine_memory().total_bytes;
  const std::size_t most = total_bytes != 0 ? total_bytes : SIZE_MAX / 4;
  if (bytes <= most) return;
  throw DeviceError(DeviceStatus::kMemoryAllocation,
                    format("cannot allocate %zu bytes: the machine has %zu", bytes, most));
}

}  // namespace

// Reserves more address space than needed, and maps the memfd onto the aligned part of it.
Memory::Segment::Segment(std::size_t segment_bytes, std::uint64_t segment_id)
    : fd(create_memfd("catenary-memory", segment_bytes)),
      mapping(Mapping::anonymous(segment_bytes + kLargeAlignment)),
      base(mapping.data() +
           (round_up(address_of(mapping.data()), kLargeAlignment) - address_of(mapping.data()))),
      bytes(segment_bytes),
      id(segment_id) {
  void* mapped = ::mmap(base, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED,
                        fd.get(), 0);
  if (mapped == MAP_FAILED)
    throw_system_error(format("cannot map %zu bytes of device memory", bytes), errno);
}

Memory& Memory::process() {
  static Memory& memory = *new Memory;
  return memory;
}

std::byte* Memory::allocate(std::size_t bytes, MemoryKind kind, int device) {
  require_not_forked();
  check_machine_has(bytes);
  const std::unique_lock lock(mutex_);
  Place place;
  if (bytes <= kPooledBytes) {
    const std::size_t units = (std::max(bytes, std::size_t{1}) - 1) / kLeastBytes;
    place = take_pooled(static_cast<std::size_t>(std::bit_width(units)));
  } else {
    place.segment = std::make_shared<Segment>(round_up(bytes, kPageBytes), next_id_++);
    place.base = place.segment->base;
  }
  blocks_.emplace(address_of(place.base), Block{bytes, place.segment, device, kind});
  return place.base;
}

Memory::Place Memory::take_pooled(std::size_t size_class) {
  auto& free = free_[size_class];
  if (!free.empty()) {
    Place place = std::move(free.back());
    free.pop_back();
    return place;
  }
  const std::size_t block_bytes = kLeastBytes << size_class;
  std::size_t from = chunk_ != nullptr ? round_up(chunk_->used, block_bytes) : 0;
  if (chunk_ == nullptr || from + block_bytes > chunk_->bytes) {
    chunk_ = std::make_shared<Segment>(kChunkBytes, next_id_++);
    from = 0;
  }
  chunk_->used = from + block_bytes;
  return {chunk_->base + from, chunk_};
}

void Memory::free(void* base, MemoryKind kind) {
  require_not_forked();
  const std::unique_lock lock(mutex_);
  const auto found = blocks_.find(address_of(base));
  if (found == blocks_.end() || found->second.kind != kind) {
    throw DeviceError(DeviceStatus::kInvalidValue,
                      format("%p is not the start of a block of %s memory", base,
                             kind == MemoryKind::kHost ? "host" : "device"));
  }
  release(found);
}

void Memory::release(Blocks::iterator found) {
  const Block& block = found->second;
  if (block.bytes <= kPooledBytes) {
    const std::size_t units = (std::max(block.bytes, std::size_t{1}) - 1) / kLeastBytes;
    const auto size_class = static_cast<std::size_t>(std::bit_width(units));
    Place place{block.segment->base + (found->first - address_of(block.segment->base)),
                block.segment};
    // MADV_REMOVE frees the pages of the memfd. If it cannot, they are kept for the next block.
    if (block.bytes >= kGiveBackBytes)
      ::madvise(place.base, kLeastBytes << size_class, MADV_REMOVE);
    free_[size_class].push_back(std::move(place));
  }
  blocks_.erase(found);
}

void Memory::free_all(int device) {
  const std::unique_lock lock(mutex_);
  for (auto block = blocks_.begin(); block != blocks_.end();) {
    const auto next = std::next(block);
    if (block->second.device == device) release(block);
    block = next;
  }
}

std::optional<MemoryBlock> Memory::find(const void* pointer) const {
  require_not_forked();
  const std::shared_lock lock(mutex_);
  auto found = blocks_.upper_bound(address_of(pointer));
  if (found == blocks_.begin()) return std::nullopt;
  --found;
  const Block& block = found->second;
  const std::uintptr_t inside = address_of(pointer) - found->first;
  if (inside >= block.bytes) return std::nullopt;
  const Segment& segment = *block.segment;
  const std::uint64_t offset = found->first - address_of(segment.base);
  return MemoryBlock{segment.base + offset, block.bytes, segment.fd.get(), offset,
                     segment.bytes,         segment.id,  block.device,     block.kind};
}

}  // namespace catenary
