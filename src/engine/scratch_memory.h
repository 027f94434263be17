// ScratchMemory: what a schedule's scratch chunks lie in. Kept from one operation to the next,
// since collectives of a communicator follow each other; grows when one needs more.
//
// Threads: the driver, from the start of a run to its end. Nothing waits. Failure: std::bad_alloc,
// which ends the operation.
#pragma once

#include <cstddef>
#include <memory>
#include <new>

namespace catenary {

class ScratchMemory {
 public:
  static constexpr std::size_t kAlignment = 64;

  // Undefined bytes; what an earlier call gave is void.
  std::byte* at_least(std::size_t bytes) {
    if (bytes > bytes_) {
      memory_.reset();
      bytes_ = 0;
      memory_.reset(new (std::align_val_t{kAlignment}) std::byte[bytes]);
      bytes_ = bytes;
    }
    return memory_.get();
  }

 private:
  struct Release {
    void operator()(std::byte* memory) const {
      operator delete[](memory, std::align_val_t{kAlignment});
    }
  };
  std::unique_ptr<std::byte[], Release> memory_;
  std::size_t bytes_ = 0;
};

}  // namespace catenary
