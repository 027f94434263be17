// RecentOutputs: whether the caches may still hold the place that an operation is to write to.
//
// A result that is stored where the caches hold nothing costs a read of every line before it is
// written over, and the write later; stored past them, a write. Where they hold it, stores past
// them are several times as slow. Nobody tells, so the last few places are kept, and how much went
// through the caches since then. A first use counts as none: that is once for each buffer.
//
// Under the issue lock. Nothing fails.
#pragma once

#include <array>
#include <cstddef>

#include "src/base/size_literals.h"

namespace catenary {

class RecentOutputs {
 public:
  // Shorter ones are better stored plainly in any case, and are not kept.
  static constexpr std::size_t kLeastBytes = 256_KB;

  explicit RecentOutputs(std::size_t cache_bytes) : cache_bytes_(cache_bytes) {}

  // That `bytes` at `output` are written to now, by an operation that moves `moved` bytes through
  // the caches. Whether they may have been there before.
  bool note(const std::byte* output, std::size_t bytes, std::size_t moved) {
    Use* same = nullptr;
    bool was_there = false;
    for (Use& each : uses_) {
      const bool begins_in_it = each.begin <= output && output < each.begin + each.bytes;
      was_there = was_there || (begins_in_it && moved_ - each.moved_before <= cache_bytes_);
      if (each.begin == output && each.bytes == bytes) same = &each;
    }
    if (same == nullptr) same = &uses_[next_++ % kKept];
    moved_ += moved;
    *same = {output, bytes, moved_};
    return was_there;
  }

 private:
  // A cache of 64 MB holds as many of the shortest, as they move four times as much.
  static constexpr std::size_t kKept = 64;
  struct Use {
    const std::byte* begin = nullptr;
    std::size_t bytes = 0;
    std::size_t moved_before = 0;  // through the caches, up to its end
  };

  const std::size_t cache_bytes_;
  std::size_t moved_ = 0;
  std::size_t next_ = 0;
  std::array<Use, kKept> uses_;
};

}  // namespace catenary
