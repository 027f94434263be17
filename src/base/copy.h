// Copies of bytes between disjoint ranges, of any alignment. Pure functions, any thread.
#pragma once

#include <cstddef>

#include "src/base/types.h"

namespace catenary {

// The C library's, which already chooses by size and processor.
void copy(void* out, const void* in, std::size_t bytes);
// By vectors however long, if the C library is glibc. The processor's instruction for strings is
// quicker where much is overwritten.
void copy_by_vectors(void* out, const void* in, std::size_t bytes);
// Whether on this processor that instruction slows a core down which writes close to what is read:
// a Zen 4 does that, a Zen 5 does not.
bool strings_slow_writers();
// Nothing where there is no `out`, or it is there already.
inline void copy_unless_same(void* out, const void* in, std::size_t bytes) {
  if (out != nullptr && out != in) copy(out, in, bytes);
}

// Whether this build can write past the caches.
#ifdef __x86_64__
inline constexpr bool kCanStream = true;
#else
inline constexpr bool kCanStream = false;
#endif

// Writes past the caches, where it can, for results that nobody reads soon: it saves reading what
// is overwritten and keeps the caches as they are. Done, for other threads too, when it returns.
void copy_streaming(void* out, const void* in, std::size_t bytes);
// And fetches what will be read `soon`, no more of it than `bytes`, while its stores are under way.
void copy_streaming_and_fetch(void* out, const void* in, std::size_t bytes, ByteView soon);
// And copies to a second place in the same go, by stores that do not go past the caches.
void copy_streaming_and_copy(void* out, void* second, const void* in, std::size_t bytes);
// And writes past the caches to a second place in the same go.
void copy_streaming_twice(void* out, void* second, const void* in, std::size_t bytes);

}  // namespace catenary
