// Memory: what catMalloc, catMallocHost and ncclMemAlloc give: memory that a peer can be let into.
//
// Every block lies in a memfd, and find() tells in which and where, so that the descriptor can be
// passed to a peer who maps it. Blocks above kPooledBytes have a memfd of their own; smaller ones
// share a few large sparse ones, because a process may have a thousand descriptors only. Pages cost
// memory when first touched, and a large block that is freed gives them back at once.
//
// Threads: any. Nothing waits. Owner: the process; blocks live until freed. Failure: DeviceError,
// kMemoryAllocation for more than the machine has, kInvalidValue for a pointer that is not a block.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <vector>

#include "src/base/mapping.h"
#include "src/base/unique_fd.h"

namespace catenary {

enum class MemoryKind : std::uint8_t { kDevice, kHost };

// Where a block is. `fd` is open, and what is mapped stays the same, until the block is freed.
struct MemoryBlock {
  std::byte* base;
  std::size_t bytes;  // as asked for
  int fd;
  std::uint64_t offset;    // of base in fd
  std::uint64_t fd_bytes;  // size of the whole memfd, for check_memfd
  std::uint64_t fd_id;     // of the memfd, never used twice in a process: peers map each once
  int device;
  MemoryKind kind;
};

class Memory {
 public:
  static constexpr std::size_t kPooledBytes = std::size_t{1} << 20;
  static constexpr std::size_t kLargeAlignment = std::size_t{2} << 20;  // a huge page

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

 private:
  static constexpr std::size_t kLeastBytes = 256;
  static constexpr std::size_t kClasses = 13;  // 256 B, 512 B, ... 1 MiB
  static constexpr std::size_t kChunkBytes = std::size_t{64} << 20;

  // One memfd and where it is mapped.
  struct Segment {
    explicit Segment(std::size_t bytes, std::uint64_t id);
    UniqueFd fd;
    Mapping mapping;  // may be wider than the memfd, for alignment
    std::byte* base;
    std::size_t bytes;
    std::uint64_t id;
    std::size_t used = 0;  // of a shared one: what was ever handed out
  };
  struct Block {
    std::size_t bytes;
    std::shared_ptr<Segment> segment;
    int device;
    MemoryKind kind;
  };
  using Blocks = std::map<std::uintptr_t, Block>;
  struct Place {
    std::byte* base;
    std::shared_ptr<Segment> segment;
  };

  Place take_pooled(std::size_t size_class);
  void release(Blocks::iterator block);

  mutable std::shared_mutex mutex_;
  Blocks blocks_;
  std::array<std::vector<Place>, kClasses> free_;
  std::shared_ptr<Segment> chunk_;  // that new pooled blocks are cut from
  std::uint64_t next_id_ = 1;
};

}  // namespace catenary
