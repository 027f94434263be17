#include "src/device/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <mutex>

#include "src/base/error.h"
#include "src/base/log.h"
#include "src/base/mapping.h"
#include "src/base/rounding.h"
#include "src/base/size_literals.h"
#include "src/device/device_error.h"
#include "src/device/process_life.h"
#include "src/topology/machine.h"

namespace catenary {
namespace {

constexpr std::size_t kGiveBackBytes = 64_KB;  // smaller ones are not worth the system call

std::uintptr_t address_of(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

std::size_t machine_bytes() {
  static const std::size_t total_bytes = machine_memory().total_bytes;
  return total_bytes != 0 ? total_bytes : 1_TB;
}

// A device's memory is there when it is allocated, and so is host memory that is pinned: programs
// do not expect their first operations to take ten times as long. But who takes all there is, to
// give it out himself, does not use it all.
bool is_plenty_left(std::size_t bytes) {
  constexpr std::size_t kLittle = 1_MB;
  return bytes <= kLittle || bytes <= memory_left_to_us() / 16;
}

// The heap may be larger than all memory, and would end in SIGBUS where it is touched.
void check_machine_has(std::size_t bytes) {
  if (bytes <= machine_bytes()) return;
  throw DeviceError(
      DeviceStatus::kMemoryAllocation,
      format("cannot allocate %zu bytes: the machine has %zu", bytes, machine_bytes()));
}

}  // namespace

Memory& Memory::process() {
  static Memory& memory = *new Memory;
  return memory;
}

const Heap* Memory::heap() {
  require_not_forked();
  const std::unique_lock lock(mutex_);
  try {
    return &heap_locked();
  } catch (const Error& error) {
    log_info(Subsystem::kAlloc, -1, format("There is no device memory: %s", error.what()));
    return nullptr;
  }
}

// Larger than the machine's memory, so that gaps between blocks never matter; but on large
// machines, where address space for all ranks' heaps is what runs short.
Heap& Memory::heap_locked() {
  constexpr std::size_t kAmple = 1_TB;
  if (!heap_) heap_.emplace(std::max(machine_bytes(), std::min(2 * machine_bytes(), kAmple)));
  return *heap_;
}

std::size_t Memory::size_class_of(std::size_t bytes) {
  const std::size_t units = (std::max(bytes, std::size_t{1}) - 1) / kLeastBytes;
  return static_cast<std::size_t>(std::bit_width(units));
}

std::byte* Memory::allocate(std::size_t bytes, MemoryKind kind, int device) {
  require_not_forked();
  check_machine_has(bytes);
  std::unique_lock lock(mutex_);
  std::byte* base = bytes <= kPooledBytes ? take_pooled(size_class_of(bytes)) : take_extent(bytes);
  if (bytes >= kGiveBackBytes) {
    lock.unlock();  // nobody knows of it yet, and nobody is to wait for it
    if (is_plenty_left(bytes)) populate(base, bytes);
    lock.lock();
  }
  blocks_.emplace(address_of(base), Block{bytes, device, kind, ++last_number_});
  return base;
}

std::byte* Memory::take_extent(std::size_t bytes) {
  if (std::byte* base = heap_locked().take(bytes)) return base;
  throw DeviceError(DeviceStatus::kMemoryAllocation,
                    format("cannot allocate %zu bytes: the limits of this process (ulimit -v, -f) "
                           "leave %zu for all blocks, and the rest is in use or in pieces",
                           bytes, heap_->bytes()));
}

std::byte* Memory::take_pooled(std::size_t size_class) {
  auto& free = free_[size_class];
  if (!free.empty()) {
    std::byte* base = free.back();
    free.pop_back();
    return base;
  }
  const std::size_t block_bytes = kLeastBytes << size_class;
  chunk_used_ = round_up(chunk_used_, block_bytes);
  if (chunk_ == nullptr || chunk_used_ + block_bytes > chunk_bytes_) {
    const std::size_t bytes = std::min(kMostChunkBytes, heap_locked().bytes() / 4);
    chunk_ = take_extent(bytes);
    chunk_bytes_ = bytes;
    chunk_used_ = 0;
  }
  std::byte* base = chunk_ + chunk_used_;
  chunk_used_ += block_bytes;
  return base;
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
  auto* base = reinterpret_cast<std::byte*>(found->first);
  const std::size_t bytes = found->second.bytes;
  blocks_.erase(found);
  if (bytes > kPooledBytes) return heap_->give_back(base, bytes);
  const std::size_t size_class = size_class_of(bytes);
  // MADV_REMOVE frees the pages of the memfd. If it cannot, they are kept for the next block.
  if (bytes >= kGiveBackBytes) ::madvise(base, kLeastBytes << size_class, MADV_REMOVE);
  free_[size_class].push_back(base);
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
  auto* base = reinterpret_cast<std::byte*>(found->first);
  return MemoryBlock{base,         block.bytes, static_cast<std::size_t>(base - heap_->base()),
                     block.device, block.kind,  block.number};
}

}  // namespace catenary
