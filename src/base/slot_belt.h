// SlotBelt: where the longer messages of a slot ring lie, as its producer lays them out: one behind
// the other on a belt of memory, round and round.
//
// Why not each in the home of its slot: a cache line that its reader still holds must be taken from
// it before it can be written again, which takes several times as long as to copy it. So a place
// should not come again before both cores have let go of it, however short the messages are; and
// lines that the cores share at a lower level are at hand even so.
//
// There is none at first, and it grows with what has passed: memory that is used for the first time
// costs more than many messages, and who sends few of them should not pay for it.
//
// Places are offsets on the belt; a message never wraps. Used by the producer's thread. Nothing
// waits or fails: a message that the belt does not take goes home.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "src/base/size_literals.h"

namespace catenary {

class SlotBelt {
 public:
  // Left free behind each message: readers' processors fetch ahead, past the end of what they read,
  // and would hold the first lines of the next message just when they are to be written.
  static constexpr std::size_t kGapBytes = 1_KB;
  // Shorter messages move few lines, and are better off with those that are at hand.
  static constexpr std::size_t kLeastBytes = 1536;
  static constexpr std::size_t kFirstBytes = 128_KB;
  // How often its length must have passed before it becomes twice as long.
  static constexpr std::size_t kRoundsToGrow = 4;

  SlotBelt(std::size_t most_bytes, std::uint32_t slots)
      : most_bytes_(most_bytes), begins_(most_bytes == 0 ? 0 : slots) {}

  // Whether messages of such a length go on it if there is room. What is so long that the homes of
  // all slots are the longer way round goes there.
  bool takes(std::size_t bytes) const {
    return bytes >= kLeastBytes && bytes * begins_.size() < bytes_;
  }
  // Where the next message may lie, beside those still held.
  std::optional<std::size_t> try_place(std::size_t bytes) const {
    const std::size_t room = room_for(bytes);
    if (tail_ <= head_) {
      if (head_ + room <= bytes_) return head_;
      if (tail_ == head_ || room < tail_) return 0;
      return std::nullopt;
    }
    return head_ + room < tail_ ? std::optional(head_) : std::nullopt;
  }
  // The message in `slot` lies where try_place(bytes) said, whatever it needs of that.
  void lay(std::uint32_t slot, std::size_t place, std::size_t bytes) {
    begins_[slot] = place;
    if (tail_ == head_) tail_ = place;
    head_ = place + room_for(bytes);
  }
  // The message in `slot` lies elsewhere.
  void pass(std::uint32_t slot) {
    if (!begins_.empty()) begins_[slot] = kElsewhere;
  }
  // All has been released but `held` messages, the first of them in `slot`.
  void free_but(std::uint32_t held, std::uint32_t slot) {
    if (tail_ == head_) return;
    for (; held > 0; --held) {
      if (begins_[slot] != kElsewhere) {
        tail_ = begins_[slot];
        return;
      }
      slot = slot + 1 == begins_.size() ? 0 : slot + 1;
    }
    tail_ = head_;
  }

  void grow_with(std::size_t bytes) {
    if (bytes_ == most_bytes_ || bytes < kLeastBytes) return;
    passed_ += bytes;
    if (passed_ < kRoundsToGrow * std::max(bytes_, kFirstBytes)) return;
    bytes_ = std::min(std::max(2 * bytes_, kFirstBytes), most_bytes_);
    passed_ = 0;
  }

 private:
  static constexpr std::size_t kElsewhere = SIZE_MAX;

  static constexpr std::size_t room_for(std::size_t bytes) {
    return (bytes + 63) / 64 * 64 + kGapBytes;
  }

  std::size_t most_bytes_;
  std::size_t bytes_ = 0;   // as much of it as is in use
  std::size_t passed_ = 0;  // since it became so long
  // Behind the newest message, and where the oldest one not known to be released begins. Where one
  // is held the head never comes up to the tail: if they are the same, nothing is.
  std::size_t head_ = 0;
  std::size_t tail_ = 0;
  std::vector<std::size_t> begins_;  // by slot
};

}  // namespace catenary
