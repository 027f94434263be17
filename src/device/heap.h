// Heap: one large sparse memfd of which all blocks of this process are cut, so that a peer that
// maps it once can read every block, whenever it was allocated.
//
//     offset 0      a random token, by which who maps this proves to itself what it has mapped
//     kFirstOffset  extents, handed out first fit on multiples of a huge page
//
// Address space is what an extent costs; pages cost memory when first touched, and go back to the
// machine when their extent is freed. Only extents go into core dumps: the kernel would fill the
// gaps with pages in order to dump them.
//
// Threads: one at a time, but base(), bytes() and fd() any. Nothing waits. Owner: Memory. Failure:
// the constructor throws kSystem; take() returns null when nothing is free.
#pragma once

#include <array>
#include <cstddef>
#include <map>

#include "src/base/mapping.h"
#include "src/base/size_literals.h"
#include "src/base/unique_fd.h"

namespace catenary {

class Heap {
 public:
  static constexpr std::size_t kAlignment = 2_MB;  // a huge page
  using Token = std::array<std::byte, 16>;

  // Of that size, or as large as the limits of this process allow.
  explicit Heap(std::size_t bytes);

  // `bytes` at a multiple of kAlignment; null if no gap is as long.
  std::byte* take(std::size_t bytes);
  // What take() gave, with the same bytes.
  void give_back(std::byte* base, std::size_t bytes);

  std::byte* base() const { return base_; }
  std::size_t bytes() const { return bytes_; }
  int fd() const { return fd_.get(); }

 private:
  static constexpr std::size_t kFirstOffset = kAlignment;
  static constexpr std::size_t kLeastBytes = 4 * kAlignment;

  bool try_map();

  UniqueFd fd_;
  Mapping reserved_;  // address space, wider than the memfd for alignment
  std::byte* base_ = nullptr;
  std::size_t bytes_ = 0;
  std::map<std::size_t, std::size_t> gaps_;  // offset -> bytes; no two touch
};

}  // namespace catenary
