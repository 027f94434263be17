// Memory for slot rings.
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

}  // namespace catenary
