// Mapping: owns one mmap'ed range. Memfds made here are sealed against shrinking, so that no peer
// can turn our access into SIGBUS. Any thread; nothing waits; failures throw kSystem.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "src/base/unique_fd.h"

namespace catenary {

class Mapping {
 public:
  Mapping() = default;
  // Maps `bytes` of `fd` shared, readable and writable, from `offset`.
  static Mapping shared(int fd, std::size_t bytes, std::uint64_t offset = 0);
  // Address space in which nothing is, to map something onto; none if there is not as much.
  static Mapping try_reserve(std::size_t bytes) noexcept;
  // Maps `bytes` of another process's `fd`, and leaves them out of core dumps.
  static Mapping of_peer(int fd, std::size_t bytes, bool is_writable);
  // Private zeroed memory that costs nothing until touched.
  static Mapping anonymous(std::size_t bytes);

  Mapping(Mapping&& other) noexcept
      : base_(std::exchange(other.base_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Mapping& operator=(Mapping&& other) noexcept;
  ~Mapping();

  std::byte* data() const noexcept { return base_; }
  std::size_t bytes() const noexcept { return bytes_; }
  explicit operator bool() const noexcept { return base_ != nullptr; }

 private:
  Mapping(std::byte* base, std::size_t bytes) : base_(base), bytes_(bytes) {}
  std::byte* base_ = nullptr;
  std::size_t bytes_ = 0;
};

// Brings the pages of a range in, for writing, ahead of their first use; what they hold stays. A
// hint: where the system cannot, or has no memory, they come when touched.
void populate(std::byte* at, std::size_t bytes) noexcept;

// Before a range of a peer's memory is written to, which that has filled: the kernel maps some 16
// pages around one that is read (a third of a microsecond each), and one at a time of those that
// are written (over one).
void map_by_reading(const std::byte* at, std::size_t bytes) noexcept;

// Where the range is touched here and there, large pages spare it most misses of address
// translation, at the price of memory that nothing uses. A hint.
void prefer_large_pages(std::byte* at, std::size_t bytes) noexcept;

// A memfd of exactly `bytes`, close-on-exec, sealed against growing and shrinking. Sparse: pages
// cost memory when first touched.
UniqueFd create_memfd(const char* name, std::size_t bytes);

// Throws kSystem unless `fd` is a memfd sealed as create_memfd seals it and holds `bytes`.
void check_memfd(int fd, std::size_t bytes);

}  // namespace catenary
