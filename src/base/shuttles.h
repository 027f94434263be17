// Shuttles: pieces of memory that go to and fro between two ranks with the longer messages of the
// two slot rings between them.
//
// Why: the lines of a message lie with the core that has read it. Who writes the next one in the
// same place has to take each line back first, and the reader has to fetch each of them again. Who
// answers in the place that it has just read has them at hand: each line goes one way only, and the
// same few lines serve for all messages.
//
// So a piece belongs to who has it: at first each ring's producer has kOfEach of them, who sends a
// message on one has it no longer, and who has done reading that message has it from then on. It is
// never given back but with a message, and nobody waits for one: who has none, because its peer
// does not answer, lays its message elsewhere.
//
// Of one rank, for its ends of both rings, which one thread uses at a time. Both ranks number them
// their own way: first those that were theirs at first.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "src/base/error.h"
#include "src/base/mapping.h"
#include "src/base/size_literals.h"

namespace catenary {

class Shuttles {
 public:
  static constexpr std::uint32_t kOfEach = 8;
  static constexpr std::uint32_t kAll = 2 * kOfEach;

  // Where those begin that were ours at first, and those that were the peer's; all are `bytes`
  // long, with `spacing` between their beginnings.
  Shuttles(std::byte* ours, std::byte* theirs, std::size_t bytes, std::size_t spacing)
      : ours_(ours), theirs_(theirs), bytes_(bytes), spacing_(spacing) {
    for (std::uint32_t each = 0; each < kOfEach; ++each) keep(each);
    touched_.fill(kTouchedBytes);
  }

  // Of those we have the one that came last, whose lines are the nearest.
  std::optional<std::uint32_t> at_hand() const {
    return count_ > 0 ? std::optional(at_hand_[count_ - 1]) : std::nullopt;
  }
  std::byte* at(std::uint32_t shuttle) const {
    return shuttle < kOfEach ? ours_ + shuttle * spacing_
                             : theirs_ + (shuttle - kOfEach) * spacing_;
  }
  // Brings in what `bytes` of it come to, in pieces: a page at a time takes longer.
  void touch(std::uint32_t shuttle, std::size_t bytes) {
    std::size_t& touched = touched_[shuttle];
    while (touched < bytes) {
      const std::size_t piece = std::min(kTouchedPiece, bytes_ - touched);
      populate(at(shuttle) + touched, piece);
      touched += piece;
    }
  }

  // It goes to the peer with a message.
  void send(std::uint32_t shuttle) {
    std::uint32_t place = count_ - 1;
    while (at_hand_[place] != shuttle) --place;
    for (; place + 1 < count_; ++place) at_hand_[place] = at_hand_[place + 1];
    --count_;
  }
  // What the peer calls `shuttle` by our number. Throws kRemote if there is none, or we have it.
  std::uint32_t from_peer(std::uint64_t shuttle) const {
    const auto ours =
        static_cast<std::uint32_t>(shuttle < kAll ? (shuttle + kOfEach) % kAll : kAll);
    bool is_ours = ours == kAll;
    for (std::uint32_t place = 0; place < count_; ++place) is_ours |= at_hand_[place] == ours;
    if (is_ours) {
      throw_error(ErrorCode::kRemote,
                  "a peer damaged a ring: a message on shuttle %llu, which it does not have; the "
                  "peer's process is faulty",
                  static_cast<unsigned long long>(shuttle));
    }
    return ours;
  }
  // Its message has been read.
  void keep(std::uint32_t shuttle) { at_hand_[count_++] = shuttle; }

 private:
  // The first pages come when they are touched, if not with the ring: short messages need no more.
  static constexpr std::size_t kTouchedBytes = 8_KB;
  static constexpr std::size_t kTouchedPiece = 64_KB;

  std::byte* ours_;
  std::byte* theirs_;
  std::size_t bytes_;
  std::size_t spacing_;
  std::uint32_t count_ = 0;
  std::array<std::uint32_t, kAll> at_hand_ = {};
  std::array<std::size_t, kAll> touched_;
};

}  // namespace catenary
