// Vectors of 64 bytes as they lie in memory, for the files of kernels that have AVX-512.
//
// In an anonymous namespace, as loops.h is, and for the same reason.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstring>

#include "src/base/types.h"

namespace catenary::kernels {
namespace {

// The first `bytes` lanes of 8 bits, bytes < 64.
__mmask64 first_lanes(std::size_t bytes) { return (1ull << bytes) - 1; }

template <std::size_t kElement>
struct Raw512 {
  using Raw = __m512i;
  static constexpr std::size_t kElementBytes = kElement;
  static constexpr int kUnroll = 4;
  static Raw load(const void* from) { return _mm512_loadu_si512(from); }
  static void store(void* to, Raw raw) { _mm512_storeu_si512(to, raw); }
  static void stream(void* to, Raw raw) { _mm512_stream_si512(static_cast<__m512i*>(to), raw); }
  static void fence() { _mm_sfence(); }
  static Raw load_tail(const void* from, std::size_t bytes) {
    return _mm512_maskz_loadu_epi8(first_lanes(bytes), from);
  }
  static void store_tail(void* to, Raw raw, std::size_t bytes) {
    _mm512_mask_storeu_epi8(to, first_lanes(bytes), raw);
  }
  static Raw splat(const Scalar& scalar) {
    long long bits;
    std::memcpy(&bits, scalar.bits, sizeof(bits));
    if constexpr (kElement == 1) return _mm512_set1_epi8(static_cast<char>(bits));
    if constexpr (kElement == 2) return _mm512_set1_epi16(static_cast<short>(bits));
    if constexpr (kElement == 4) return _mm512_set1_epi32(static_cast<int>(bits));
    if constexpr (kElement == 8) return _mm512_set1_epi64(bits);
  }
};

}  // namespace
}  // namespace catenary::kernels
