// Numbers of bytes as one says them: 64_KB, 2_MB. A KB is 1024 bytes.
#pragma once

#include <cstddef>

namespace catenary {

consteval std::size_t operator""_KB(unsigned long long count) { return count << 10; }
consteval std::size_t operator""_MB(unsigned long long count) { return count << 20; }
consteval std::size_t operator""_TB(unsigned long long count) { return count << 40; }

}  // namespace catenary
