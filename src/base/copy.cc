#include "src/base/copy.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace catenary {

// In pieces, since the C library copies what is longer than a core's cache by vectors, which have
// every line fetched that they overwrite.
void copy(void* out, const void* in, std::size_t bytes) {
  constexpr std::size_t kPiece = std::size_t{1} << 16;
  auto* to = static_cast<std::byte*>(out);
  const auto* from = static_cast<const std::byte*>(in);
  for (std::size_t at = 0; at < bytes; at += kPiece) {
    std::memcpy(to + at, from + at, std::min(kPiece, bytes - at));
  }
}

#ifdef __x86_64__
void copy_streaming(void* out, const void* in, std::size_t bytes) {
  constexpr std::size_t kLine = 64;
  auto* to = static_cast<std::byte*>(out);
  const auto* from = static_cast<const std::byte*>(in);
  // Whole lines only: a line that is stored in parts costs a read after all.
  const std::size_t head = std::min(bytes, -reinterpret_cast<std::uintptr_t>(out) % kLine);
  std::memcpy(to, from, head);
  std::size_t offset = head;
  for (; offset + kLine <= bytes; offset += kLine) {
    __m128i part[4];
    std::memcpy(part, from + offset, kLine);
    for (int i = 0; i < 4; ++i)
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + offset) + i, part[i]);
  }
  std::memcpy(to + offset, from + offset, bytes - offset);
  _mm_sfence();
}
#else
void copy_streaming(void* out, const void* in, std::size_t bytes) { copy(out, in, bytes); }
#endif

}  // namespace catenary
