// Copies of bytes between disjoint ranges, of any alignment. Pure functions, any thread.
#pragma once

#include <cstddef>

namespace catenary {

// The C library's, which already chooses by size and processor.
void copy(void* out, const void* in, std::size_t bytes);

// Writes past the caches, for results that nobody reads soon: it saves reading what is overwritten
// and keeps the caches as they are. Done, for other threads too, when it returns.
void copy_streaming(void* out, const void* in, std::size_t bytes);

}  // namespace catenary
