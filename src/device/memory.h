// Memory: what catMalloc, catMallocHost and ncclMemAlloc give: memory that peers can be let into.
//
// All blocks lie in one heap, a sparse memfd that a peer maps once. Blocks above kPooledBytes are
// extents of it; smaller ones share extents, cut into size classes. Blocks of 64 KB and more have
// their pages when they are allocated, unless they are much of what is left; others when they are
// touched. A large block that is freed gives them back at once.
//
// Threads: any. Nothing waits. Owner: the process; blocks live until freed. Failure: DeviceError,
// kMemoryAllocation for more than the machine has, kInvalidValue for a pointer that is not a block.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <shared_mutex>
#include <vector>

#include "src/base/size_literals.h"
#include "src/device/heap.h"

namespace catenary {

enum class MemoryKind : std::uint8_t { kDevice, kHost };

// Where a block is. What is mapped stays the same until the block is freed.
struct MemoryBlock {
  std::byte* base;
  std::size_t bytes;   // as asked for
  std::size_t offset;  // of base in the heap
  int device;
  MemoryKind kind;
  std::uint64_t number;  // that no other block ever has
};

class Memory {
 public:
  static constexpr std::size_t kPooledBytes = 1_MB;

  // The process's own, never destroyed.
  static Memory& process();

  Memory() = default;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  std::byte* allocate(std::size_t bytes, MemoryKind kind, int device);
  // `base` as allocate() gave it, with the same kind.
  void free(void* base, MemoryKind kind);
  // Frees everything of one device.
  void free_all(int device);

  // The block that `pointer` points into.
  std::optional<MemoryBlock> find(const void* pointer) const;

  // Where all blocks lie, those to come as well. Null if none can be made: then there will be no
  // blocks.
  const Heap* heap();

 private:
  static constexpr std::size_t kLeastBytes = 256;
  static constexpr std::size_t kClasses = 13;  // 256 B, 512 B, ... 1 MiB
  static constexpr std::size_t kMostChunkBytes = 64_MB;

  struct Block {
    std::size_t bytes;
    int device;
    MemoryKind kind;
    std::uint64_t number;
  };
  using Blocks = std::map<std::uintptr_t, Block>;

  static std::size_t size_class_of(std::size_t bytes);
  Heap& heap_locked();
  std::byte* take_extent(std::size_t bytes);
  std::byte* take_pooled(std::size_t size_class);
  void release(Blocks::iterator block);

  mutable std::shared_mutex mutex_;
  std::optional<Heap> heap_;  // from its first use on
  Blocks blocks_;
  std::uint64_t last_number_ = 0;
  std::array<std::vector<std::byte*>, kClasses> free_;
  std::byte* chunk_ = nullptr;  // that new pooled blocks are cut from
  std::size_t chunk_bytes_ = 0;
  std::size_t chunk_used_ = 0;
};

}  // namespace catenary
