#include "src/base/copy.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "src/base/size_literals.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace catenary {

// In pieces, since the C library copies what is longer than a core's cache by vectors, which have
// every line fetched that they overwrite.
void copy(void* out, const void* in, std::size_t bytes) {
  constexpr std::size_t kPiece = 64_KB;
  auto* to = static_cast<std::byte*>(out);
  const auto* from = static_cast<const std::byte*>(in);
  for (std::size_t at = 0; at < bytes; at += kPiece) {
    std::memcpy(to + at, from + at, std::min(kPiece, bytes - at));
  }
}

void copy_by_vectors(void* out, const void* in, std::size_t bytes) {
  // The C library does so with less than 2 KB. The compiler would not, if it knew that it is less.
  constexpr std::size_t kPiece = 1984;
  void* (*volatile const copy_piece)(void*, const void*, std::size_t) = std::memcpy;
  auto* to = static_cast<std::byte*>(out);
  const auto* from = static_cast<const std::byte*>(in);
  for (std::size_t at = 0; at < bytes; at += kPiece) {
    copy_piece(to + at, from + at, std::min(kPiece, bytes - at));
  }
}

bool strings_slow_writers() {
#ifdef __x86_64__
  static const bool do_so = __builtin_cpu_is("amdfam19h");  // of these a Zen 4 was measured
  return do_so;
#else
  return false;
#endif
}

#ifdef __x86_64__
namespace {

constexpr std::size_t kLine = 64;
// So far ahead lines are fetched, which processors do by themselves up to the end of a page. What
// lies behind the end may be another core's, and is left alone.
constexpr std::size_t kAhead = 2_KB;

void fetch(const std::byte* from, std::size_t offset, std::size_t bytes) {
  if (offset < bytes) __builtin_prefetch(from + offset);
}

[[gnu::always_inline]] inline void stream_line(std::byte* to, const std::byte* from) {
  __m128i part[4];
  std::memcpy(part, from, kLine);
  for (int i = 0; i < 4; ++i) _mm_stream_si128(reinterpret_cast<__m128i*>(to) + i, part[i]);
}

// Stores whole lines only: one that is stored in parts costs a read after all. `also` does with
// each line what else is to be done, and with what remains at both ends.
template <class Also>
[[gnu::always_inline]] inline void stream(std::byte* to, const std::byte* from, std::size_t bytes,
                                          const Also& also) {
  const std::size_t head = std::min(bytes, -reinterpret_cast<std::uintptr_t>(to) % kLine);
  std::memcpy(to, from, head);
  also(0, head);
  std::size_t offset = head;
  for (; offset + kLine <= bytes; offset += kLine) {
    fetch(from, offset + kAhead, bytes);
    stream_line(to + offset, from + offset);
    also(offset, kLine);
  }
  std::memcpy(to + offset, from + offset, bytes - offset);
  also(offset, bytes - offset);
  _mm_sfence();
}

}  // namespace

void copy_streaming(void* out, const void* in, std::size_t bytes) {
  stream(static_cast<std::byte*>(out), static_cast<const std::byte*>(in), bytes,
         [](std::size_t, std::size_t) {});
}

void copy_streaming_and_fetch(void* out, const void* in, std::size_t bytes, ByteView soon) {
  stream(static_cast<std::byte*>(out), static_cast<const std::byte*>(in), bytes,
         [soon](std::size_t at, std::size_t) { fetch(soon.data(), at, soon.size()); });
}

void copy_streaming_and_copy(void* out, void* second, const void* in, std::size_t bytes) {
  auto* const to = static_cast<std::byte*>(second);
  const auto* const from = static_cast<const std::byte*>(in);
  stream(static_cast<std::byte*>(out), from, bytes,
         [=](std::size_t at, std::size_t size) { std::memcpy(to + at, from + at, size); });
}

void copy_streaming_twice(void* out, void* second, const void* in, std::size_t bytes) {
  auto* const to = static_cast<std::byte*>(second);
  const auto* const from = static_cast<const std::byte*>(in);
  const auto apart = reinterpret_cast<std::uintptr_t>(out) - reinterpret_cast<std::uintptr_t>(to);
  if (apart % kLine != 0) {  // lines of one are not lines of the other
    copy_streaming(out, in, bytes);
    return copy_streaming(second, in, bytes);
  }
  stream(static_cast<std::byte*>(out), from, bytes, [=](std::size_t at, std::size_t size) {
    if (size < kLine) {
      std::memcpy(to + at, from + at, size);
    } else {
      stream_line(to + at, from + at);
    }
  });
}
#else
void copy_streaming(void* out, const void* in, std::size_t bytes) { copy(out, in, bytes); }

void copy_streaming_and_fetch(void* out, const void* in, std::size_t bytes, ByteView) {
  copy(out, in, bytes);
}

void copy_streaming_and_copy(void* out, void* second, const void* in, std::size_t bytes) {
  copy(out, in, bytes);
  copy(second, in, bytes);
}

void copy_streaming_twice(void* out, void* second, const void* in, std::size_t bytes) {
  copy_streaming_and_copy(out, second, in, bytes);
}
#endif

}  // namespace catenary
