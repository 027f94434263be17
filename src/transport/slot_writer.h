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

#include "src/base/types.h"

namespace catenary {

class SlotWriter {
 public:
  // What plain stores of some thousand bytes took, in nanoseconds: a clock that tests can set.
  using Clock = std::int64_t (*)() noexcept;
  explicit SlotWriter(Clock clock) : clock_(clock) {}

  void write(std::byte* at, ByteView data) noexcept;
  bool streams() const noexcept { return streams_; }

 private:
  bool wants_to_know() noexcept;
  void learn(bool plain_is_slow) noexcept;

  Clock clock_;
  bool streams_ = false;
  std::uint32_t writes_ = 0;
  std::uint32_t doubts_ = 0;  // how often in a row the other way would have been right
};

}  // namespace catenary
