// Heap: one large sparse memfd of which all blocks of this process are cut, so that a peer that
// maps it once can read every block, whenever it was allocated.
//
//     offset 0      a random token, by which who maps this proves to itself what it has mapped
//     kFirstOffset  extents, handed out first fit on multiples of a huge page
//
// Address space is what an extent costs; pages cost memory when first touched, and go back to the
// machine when their extent is freed.
//
// Threads: one at a time, but token() and the like any. Nothing waits. Owner: Memory. Failure: the
// constructor throws kSystem; take() returns null when nothing is free.
#pragma once

#include <array>
#include <cstddef>
#include <map>

#include "src/base/mapping.h"
#include "src/base/unique_fd.h"

namespace catenary {

class Heap {
 public:
  static constexpr std::size_t kAlignment = std::size_t{2} << 20;  // a huge page
  using Token = std::array<std::byte, 16>;

  // Of at least this size if the limits of this process allow, otherwise as large as they do.
  explicit Heap(std::size_t bytes);

  // `bytes` at a multiple of kAlignment; null if no gap is as long.
  std::byte* take(std::size_t bytes);
  // What take() gave, with the same bytes.
  void give_back(std::byte* base, std::size_t bytes);

  std::byte* base() const { return base_; }
  std::size_t bytes() const { return bytes_; }
  int fd() const { return fd_.get(); }
  const Token& token() const { return *reinterpret_cast<const Token*>(base_); }

 private:
  static constexpr std::size_t kFirstOffset = kAlignment;

  UniqueFd fd_;
  Mapping reserved_;  // wider than the memfd, for alignment
  std::byte* base_ = nullptr;
  std::size_t bytes_ = 0;
  std::map<std::size_t, std::size_t> gaps_;  // offset -> bytes; no two touch
};

}  // namespace catenary
