// Fills buffers with a pattern and counts the elements that differ from it.
//
// A Tile is one period repeated until it is long enough that copying and comparing run at the
// speed of memory. Threads: a tile is immutable; the functions touch only what they are given.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "bench/perf/data_type.h"

namespace catenary::perf {

class Tile {
 public:
  // `period` holds kPeriod elements.
  Tile(const std::vector<std::byte>& period, const DataType& type);

  // Writes `count` elements of the pattern, beginning with its element `first`.
  void fill(std::byte* elements, std::size_t count, std::size_t first) const;
  // How many of `count` elements differ from the pattern by more than `tolerance_ulp`.
  std::size_t count_wrong(const std::byte* elements, std::size_t count, std::size_t first,
                          int tolerance_ulp) const;

  // "element 7: 0x12 instead of 0x34", of the first that is wrong; "" if none is.
  std::string describe_first_wrong(const std::byte* elements, std::size_t count, std::size_t first,
                                   int tolerance_ulp) const;

 private:
  // The longest run of the tile that starts at `element`.
  std::span<const std::byte> run(std::size_t element, std::size_t count) const;

  std::size_t type_bytes_;
  std::size_t periods_;
  std::vector<std::byte> elements_;
};

// Bytes of each guard, one before and one after a receive buffer.
inline constexpr std::size_t kGuardBytes = 512;

void fill_guard(std::byte* guard);
// 8-byte words of the guard that somebody has written to.
std::size_t count_touched(const std::byte* guard);

}  // namespace catenary::perf
