// SlotWriter: copies into memory that another core has read and will read again, by the stores that
// are quicker there.
//
// Between cores that share a cache those are plain ones. Where they share none, as on two dies or
// sockets, to take a line from its reader takes many times as long as to copy it, and stores past
// the caches, which need not have the line, are several times as fast. Which of the two it is gets
// measured along the way, and again and again: a virtual machine's cores move.
//
// One thread at a time. Nothing waits or fails.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/base/size_literals.h"
#include "src/base/types.h"

namespace catenary {

class SlotWriter {
 public:
  // Nanoseconds. Looked at three times a sample: what is measured lies between the last two, and
  // between the first two how long a look takes.
  using Clock = std::int64_t (*)() noexcept;
  explicit SlotWriter(Clock clock);

  // Fewer bytes are stored plainly, and measured never.
  static constexpr std::size_t kLeastStreamedBytes = 2_KB;

  void write(std::byte* at, ByteView data) noexcept;
  // Whether it would write so many bytes past the caches.
  bool streams(std::size_t bytes) const noexcept {
    return streams_ && bytes >= kLeastStreamedBytes;
  }

 private:
  bool wants_to_know() noexcept;
  bool plain_is_slow(std::byte* at, const std::byte* from) const noexcept;
  void learn(bool is_slow) noexcept;

  Clock clock_;
  bool streams_ = false;
  std::uint32_t writes_ = 0;  // since the last sample
  std::uint32_t per_sample_;
  std::uint32_t doubts_ = 0;  // how often in a row the other way would have been right
};

}  // namespace catenary
