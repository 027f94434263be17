// Messages that can be told from each other, at every byte.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "src/base/types.h"

namespace catenary {

// Copied and compared in runs, since going from byte to byte takes sanitizers longer than what is
// tested. A prime length: the same place of two slots or chunks does not look alike.
inline constexpr std::size_t kPatternBytes = 65521;

inline const std::array<std::byte, kPatternBytes>& pattern() {
  static const auto bytes = [] {
    std::array<std::byte, kPatternBytes> made;
    std::uint64_t state = 1;
    for (std::byte& byte : made) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      byte = static_cast<std::byte>(state >> 56);
    }
    return made;
  }();
  return bytes;
}

// Calls at_run(at, run) with what the message has from `at` on, until it returns false or all of
// `bytes` is covered, and returns whether it is.
template <class AtRun>
bool for_each_run(std::uint64_t message, std::size_t bytes, const AtRun& at_run) {
  std::size_t from = message * 40503 % kPatternBytes;
  for (std::size_t at = 0; at < bytes;) {
    const std::size_t length = std::min(bytes - at, kPatternBytes - from);
    if (!at_run(at, ByteView(pattern()).subspan(from, length))) return false;
    at += length;
    from = 0;
  }
  return true;
}

inline void fill(ByteSpan span, std::uint64_t message) {
  for_each_run(message, span.size(), [&](std::size_t at, ByteView run) {
    std::memcpy(span.data() + at, run.data(), run.size());
    return true;
  });
}

inline bool holds(ByteView view, std::uint64_t message) {
  return for_each_run(message, view.size(), [&](std::size_t at, ByteView run) {
    return std::memcmp(view.data() + at, run.data(), run.size()) == 0;
  });
}

}  // namespace catenary
