// Combination: how an operand of ours and what a peer has lent become one, where a link may have
// the peer make a part of that. The functions are kernels of the caller's (src/kernels/reduce.h).
//
// A value. Nothing waits or fails.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "src/base/types.h"

namespace catenary {

struct Combination {
  void (*reduce)(void* out, const void* a, const void* b, std::size_t count) = nullptr;
  void (*fold_streaming)(void* out, const void* const* sources, int nsources,
                         std::size_t count) = nullptr;
  std::size_t element_bytes = 1;
  // 0: there is none. Two ranks' of one name do the same.
  std::uint32_t name = 0;

  struct Order {
    bool operand_last = false;  // the bits may depend on it
  };
  void combine(std::byte* to, const std::byte* operand, ByteView from, Order order,
               bool past_caches) const {
    std::array<const void*, 2> sources = {operand, from.data()};
    if (order.operand_last) std::swap(sources[0], sources[1]);
    const std::size_t count = from.size() / element_bytes;
    if (!past_caches) return reduce(to, sources[0], sources[1], count);
    fold_streaming(to, sources.data(), 2, count);
  }
};

}  // namespace catenary
