// Memory for slot rings, and messages that can be told from each other.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

#include "src/base/slot_ring.h"

namespace catenary {

// Zeroed memory for a ring of some shape, aligned as a mapping would be.
class RingMemory {
 public:
  explicit RingMemory(const SlotRingShape& shape)
      : base_(static_cast<std::byte*>(::operator new(shape.bytes(), kAlignment))) {
    std::fill_n(base_.get(), shape.bytes(), std::byte{0});
  }
  std::byte* get() const { return base_.get(); }

  // Makes the memory look as if `messages` had passed through it and been released.
  void begin_after(std::uint32_t messages) const {
    reinterpret_cast<std::atomic<std::uint32_t>*>(get())->store(messages);
  }

 private:
  static constexpr std::align_val_t kAlignment{SlotRingShape::kPageBytes};
  struct Free {
    void operator()(std::byte* base) const { ::operator delete(base, kAlignment); }
  };
  std::unique_ptr<std::byte[], Free> base_;
};

inline std::byte pattern(std::uint64_t message, std::size_t at) {
  return static_cast<std::byte>((message * 131 + at * 7 + (message >> 8)) & 0xff);
}

inline void fill(ByteSpan span, std::uint64_t message) {
  for (std::size_t i = 0; i < span.size(); ++i) span[i] = pattern(message, i);
}

inline bool holds(ByteView view, std::uint64_t message) {
  for (std::size_t i = 0; i < view.size(); ++i) {
    if (view[i] != pattern(message, i)) return false;
  }
  return true;
}

}  // namespace catenary
