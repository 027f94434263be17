// The links between the ranks of a schedule that is being checked: queues of at most so many
// messages. Every rank has one to every rank, itself included; those never used cost nothing, so
// that thousands of ranks fit.
//
// One thread at a time. Nothing waits: who finds a link empty or full leaves a mark on it, and who
// changes that is told to wake him. Failure: Error from mapping memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "src/base/error.h"
#include "src/base/mapping.h"
#include "src/proof/fingerprint.h"

namespace catenary::proof {

// A slice under way, with what both ends must agree on.
struct Message {
  Fingerprint value;
  std::uint64_t frame = 0;
};

// The part of the buffers that a message belongs to (0 where all are equally long), the pass, and
// the slice.
constexpr std::uint64_t frame_of(int part, std::uint32_t pass, std::uint32_t slice) {
  return static_cast<std::uint64_t>(part) << 32 | std::uint64_t{pass} << 16 | slice;
}
constexpr int part_of_frame(std::uint64_t frame) { return static_cast<int>(frame >> 32); }
// Instead of a slice: a message that opens its link, but carries no data.
inline constexpr std::uint32_t kNoSlice = UINT16_MAX;
std::string text_of_frame(std::uint64_t frame);

// All zeros is an unused link.
struct Link {
  Message front;                // if there is any
  std::uint32_t more : 28 = 0;  // the message behind it, an index into the pool; 0: none
  bool opened_by_sender : 1 = false;
  bool opened_by_receiver : 1 = false;
  bool sender_waits : 1 = false;
  bool receiver_waits : 1 = false;
  std::uint16_t messages = 0;
  std::uint16_t epoch = 0;  // of another one is an unused link as well
};

class Links {
 public:
  // All links unused, between so many ranks.
  void reset(int ranks);

  // A receiver's links lie side by side, so a rank that takes from all runs along memory. One that
  // sends to all does not; but neighbours do so at the same places in it, which are then in cache.
  Link& at(int from, int to) {
    Link& link = links_[static_cast<std::size_t>(to) * stride_ + static_cast<std::size_t>(from)];
    if (link.epoch != epoch_) {
      link = {};
      link.epoch = epoch_;
    }
    return link;
  }

  void push(Link& link, const Fingerprint& value, std::uint64_t frame) {
    if (link.messages++ > 0) return push_behind(link, {value, frame});
    link.front.value = value;
    link.front.frame = frame;
  }
  void pop(Link& link) {
    if (--link.messages > 0) pop_behind(link);
  }

 private:
  struct Node {
    Message message;
    std::uint32_t more;
  };
  static constexpr std::uint32_t kMostNodes = (1 << 28) - 1;  // 10 GB
  void push_behind(Link& link, const Message& message);
  void pop_behind(Link& link);

  Mapping small_;
  Mapping large_;  // stays, since touching it first costs more than all else
  Link* links_ = nullptr;
  std::uint16_t epoch_ = 0;
  std::uint16_t large_epoch_ = 0;
  std::size_t stride_ = 0;
  std::vector<Node> pool_;  // index 0 is nobody's
  std::uint32_t free_ = 0;  // the first unused node, chained by `more`
};

inline void Links::push_behind(Link& link, const Message& message) {
  std::uint32_t node = free_;
  if (node == 0) {
    CATENARY_ASSERT(pool_.size() <= kMostNodes);
    node = static_cast<std::uint32_t>(pool_.size());
    pool_.push_back({});
  } else {
    free_ = pool_[node].more;
  }
  pool_[node] = {message, 0};
  if (link.more == 0) {
    link.more = node & kMostNodes;
    return;
  }
  std::uint32_t last = link.more;
  while (pool_[last].more != 0) last = pool_[last].more;
  pool_[last].more = node;
}

inline void Links::pop_behind(Link& link) {
  const std::uint32_t node = link.more;
  link.front = pool_[node].message;
  link.more = pool_[node].more & kMostNodes;
  pool_[node].more = free_;
  free_ = node;
}

}  // namespace catenary::proof
