// What this process and machine have of memory, in bytes, from /proc.
#pragma once

#include <cstddef>

namespace catenary::perf {

// What can be had without swapping; 0 if the machine does not tell.
std::size_t available_memory();
// What this process has in memory now.
std::size_t resident_memory();

}  // namespace catenary::perf
