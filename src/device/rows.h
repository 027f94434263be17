// Rows of bytes that lie a pitch apart, of which `width` bytes each are meant: copied or filled.
//
// Threads: none of its own; whoever runs it owns the memory meanwhile. Nothing waits, nothing
// fails: who makes one has checked that no pitch is less than the width.
#pragma once

#include <cstddef>
#include <cstring>

namespace catenary {

struct RowCopy {
  std::byte* to;
  std::size_t to_pitch;
  const std::byte* from;
  std::size_t from_pitch;
  std::size_t width;
  std::size_t height;

  std::size_t bytes() const noexcept { return width * height; }
  void run() const noexcept {
    if (bytes() == 0) return;
    if (to_pitch == width && from_pitch == width) {
      std::memmove(to, from, bytes());
      return;
    }
    for (std::size_t row = 0; row < height; ++row) {
      std::memmove(to + row * to_pitch, from + row * from_pitch, width);
    }
  }
};

struct RowFill {
  std::byte* to;
  std::size_t pitch;
  int value;
  std::size_t width;
  std::size_t height;

  std::size_t bytes() const noexcept { return width * height; }
  void run() const noexcept {
    if (bytes() == 0) return;
    for (std::size_t row = 0; row < height; ++row) std::memset(to + row * pitch, value, width);
  }
};

}  // namespace catenary
