// StageRing: memory of one rank, in an arena, where messages to several peers lie. Such a message
// is copied once, and each peer gets a loan of it, where its slot ring would hold its own copy.
//
// Pieces lie one behind the other, round and round, and are freed in that order, each once all of
// its readers have released what they were lent. Where there is no room, who sends waits or copies
// to each peer. How far the way round is grows with what has passed, as on belts: memory that is
// used for the first time costs its owner and all readers more than the messages. Ranks that share
// cores share caches, so there only those make it longer who run ahead of their readers. Since the
// memory is nobody's buffer, and outlives its owner while others map it, an operation is over when
// it has lent, and does not wait for its readers.
//
// Threads: one, that of the links of a channel. Owner: the seat and these links, together. Nothing
// waits. Failure: kRemote when a peer has released what it was not sent.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/base/clock.h"
#include "src/base/size_literals.h"
#include "src/base/slot_ring.h"
#include "src/transport/slot_writer.h"
#include "src/transport/transport.h"

namespace catenary {

class StageRing final : public Stage {
 public:
  // As on belts: readers' processors fetch ahead, past the end of what they read.
  static constexpr std::size_t kGapBytes = 1_KB;
  // The way round at first, and how often it must have passed before it becomes twice as long. A
  // piece of more than half of it has two places all the same.
  static constexpr std::size_t kFirstBytes = 128_KB;
  static constexpr std::size_t kRoundsToGrow = 4;

  StageRing(std::byte* memory, std::size_t bytes)
      : memory_(memory), bytes_(bytes), length_(std::min(bytes, kFirstBytes)) {}

  // Whether ranks of the arena share cores; not, as long as nobody says so.
  void note_crowding(bool is_crowded) { is_crowded_ = is_crowded; }

  std::size_t most_bytes() const override { return bytes_ - std::min(bytes_, room_for(0)); }
  std::byte* try_place(std::size_t bytes) override;
  void write(std::byte* at, ByteView data) override { writer_.write(at, data); }
  int holder() override;
  // A loan of memory in the last piece, for the next message of a link.
  Loan lend(ByteView memory, int peer, SlotProducer& link);
  // The link ends. What its peer has not taken stays for good.
  void forget(const SlotProducer& link);

 private:
  struct Reader {
    SlotProducer* link;    // null: it has ended
    std::uint64_t number;  // of the last message that lends a part of the piece
    int peer;
    bool has_taken() const { return link != nullptr && link->has_taken(number); }
  };
  struct Piece {
    std::size_t begin = 0;
    std::vector<Reader> readers;  // each once
  };
  static constexpr std::size_t kMostPieces = 16;

  static constexpr std::size_t room_for(std::size_t bytes) {
    return (bytes + 63) / 64 * 64 + kGapBytes;
  }
  Piece& oldest() { return pieces_[first_ % kMostPieces]; }
  Piece& newest() { return pieces_[(first_ + held_ - 1) % kMostPieces]; }
  void free_what_was_taken();
  bool find_room(std::size_t room, std::size_t& begin);
  void lengthen(std::size_t length);
  void grow_with(std::size_t room);
  void touch(std::size_t end);

  std::byte* memory_;
  std::size_t bytes_;
  bool is_crowded_ = false;
  SlotWriter writer_{now_ns};
  std::array<Piece, kMostPieces> pieces_;
  std::size_t first_ = 0;
  std::size_t held_ = 0;
  std::size_t length_;       // of the way round
  std::size_t passed_ = 0;   // since that was last changed
  std::size_t head_ = 0;     // behind the newest piece
  std::size_t touched_ = 0;  // bytes that have been brought in
};

}  // namespace catenary
