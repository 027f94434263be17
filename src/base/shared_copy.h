// A copy that both sides of a link make: the one that wants it takes piece after piece, and the
// other one, who has given the memory that it is made of and has nothing to do until it is made,
// takes pieces, too: from the end, so that each finds in its caches what it had the last time.
// Whoever is free takes the next, so neither waits for one that is busy elsewhere, but for the last
// piece under way. What is copied may be combined with an operand of the one that wants it.
//
//     ticket: number of the copy | pieces taken     from | to | bytes     pieces of the giver's
//     operand | how it is combined
//
// Zeroed memory is no copy. Who takes a piece changes the ticket, so who closes a copy knows how
// many were taken, and that no more will be.
//
// Each side is used by one thread at a time. Nothing waits. The other side may be a faulty process:
// what it says is to be checked before it is used, and then it can keep a copy from coming to an
// end, or say that it has copied what it has not, but no more. Addresses of what the kernel copies
// it checks itself.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "src/base/rounding.h"
#include "src/base/size_literals.h"

namespace catenary {

struct alignas(64) SharedCopyWords {
  std::atomic<std::uint64_t> ticket;
  std::atomic<std::uint64_t> from;         // in the giver's memory
  std::atomic<std::uint64_t> to;           // in the other one's
  std::atomic<std::uint64_t> bytes;        // and how they are copied: the highest bits
  std::atomic<std::uint32_t> given;        // pieces that the giver is done with, and kRefused
  std::atomic<std::uint32_t> giver;        // its process, once it takes some
  std::atomic<std::uint64_t> operand;      // where `to` is; if it is combined
  std::atomic<std::uint32_t> combination;  // its name, and kOperandLast; 0: it is not

  static constexpr std::uint64_t kPastCaches = std::uint64_t{1} << 63;
  static constexpr std::uint64_t kByKernel = std::uint64_t{1} << 62;
  static constexpr std::uint64_t kHow = kPastCaches | kByKernel;
  static constexpr std::uint32_t kRefused = std::uint32_t{1} << 31;
  static constexpr std::uint32_t kOperandLast = std::uint32_t{1} << 31;
};
static_assert(sizeof(SharedCopyWords) == 64);

struct SharedPiece {
  std::size_t at = 0;
  std::size_t bytes = 0;
};

// The places of a copy, or of a piece of it, and how it is made.
struct SharedCopyOffer {
  std::uint64_t from = 0;
  std::uint64_t to = 0;
  std::uint64_t bytes = 0;
  bool past_caches = false;
  bool by_kernel = false;  // the places are addresses of the two processes
  std::uint64_t operand = 0;
  std::uint32_t combination = 0;  // less than SharedCopyWords::kOperandLast
  bool operand_last = false;
};

class SharedCopy {
 public:
  // An even number of equal pieces, so that both are done at the same time: as long as may be,
  // since to take one its line has to come from the other core, and so short that the last is soon
  // done. Their edges are no element's middle.
  static constexpr std::size_t kMostPieceBytes = 128_KB;
  static constexpr std::size_t kPieceAlignment = 4_KB;
  static constexpr std::size_t piece_bytes(std::uint64_t bytes) {
    const std::uint64_t pieces =
        2 * std::max<std::uint64_t>(1, divide_up(bytes, 2 * kMostPieceBytes));
    return kPieceAlignment * std::max<std::uint64_t>(1, divide_up(bytes, pieces * kPieceAlignment));
  }
  static constexpr std::uint64_t pieces_of(std::uint64_t bytes) {
    return divide_up(bytes, piece_bytes(bytes));
  }
  static constexpr SharedPiece piece(std::uint64_t number, std::uint64_t bytes) {
    const std::uint64_t at = number * piece_bytes(bytes);
    return {at, std::min<std::uint64_t>(piece_bytes(bytes), bytes - at)};
  }
  static constexpr std::uint32_t piece_of(std::uint64_t ticket) {
    return static_cast<std::uint32_t>(ticket);
  }
  static constexpr std::uint32_t number_of(std::uint64_t ticket) {
    return static_cast<std::uint32_t>(ticket >> 32);
  }
  // In place of a piece: no more of them are given away.
  static constexpr std::uint32_t kClosed = UINT32_MAX;
  static constexpr bool is_open(std::uint64_t ticket) {
    return ticket != 0 && piece_of(ticket) != kClosed;
  }
};

// The side that wants the copy.
class SharedCopyOwner {
 public:
  explicit SharedCopyOwner(SharedCopyWords& words)
      : words_(words),
        number_(SharedCopy::number_of(words.ticket.load(std::memory_order_relaxed))) {}

  // Not before the last one has come to an end.
  void open(const SharedCopyOffer& offer) {
    bytes_ = offer.bytes;
    pieces_ = SharedCopy::pieces_of(bytes_);
    mine_ = theirs_ = 0;
    // Relaxed, all of them: ordered by the store of the ticket.
    words_.from.store(offer.from, std::memory_order_relaxed);
    words_.to.store(offer.to, std::memory_order_relaxed);
    words_.bytes.store(offer.bytes | (offer.past_caches ? SharedCopyWords::kPastCaches : 0) |
                           (offer.by_kernel ? SharedCopyWords::kByKernel : 0),
                       std::memory_order_relaxed);
    words_.operand.store(offer.operand, std::memory_order_relaxed);
    words_.combination.store(
        offer.combination | (offer.operand_last ? SharedCopyWords::kOperandLast : 0),
        std::memory_order_relaxed);
    words_.given.store(0, std::memory_order_relaxed);
    words_.ticket.store(std::uint64_t{++number_} << 32, std::memory_order_release);
  }

  // The next piece for this side, none if all are taken.
  std::optional<SharedPiece> take() {
    if (mine_ >= pieces_) return std::nullopt;
    const std::uint32_t next =
        SharedCopy::piece_of(words_.ticket.fetch_add(1, std::memory_order_acq_rel));
    if (next >= pieces_) return std::nullopt;
    return SharedCopy::piece(mine_++, bytes_);
  }
  // Once, after open(): no piece is taken from now on.
  void close() {
    const std::uint64_t closed = std::uint64_t{number_} << 32 | SharedCopy::kClosed;
    const std::uint64_t taken =
        SharedCopy::piece_of(words_.ticket.exchange(closed, std::memory_order_acq_rel));
    theirs_ = static_cast<std::uint32_t>(std::min(taken, pieces_)) - mine_;
  }
  // After close(): a piece that the other side has not begun with yet is not to be copied.
  void cancel() {
    const std::uint64_t next = std::uint64_t{++number_} << 32 | SharedCopy::kClosed;
    words_.ticket.store(next, std::memory_order_release);
  }
  // Whether the other side still has a piece under way. Acquire: if not, all that it wrote is
  // there.
  bool is_helped() const {
    const std::uint32_t given = words_.given.load(std::memory_order_acquire);
    return (given & ~SharedCopyWords::kRefused) != theirs_;
  }
  // Whether there is a piece that the other side took and could not copy.
  bool lacks_some() const {
    return (words_.given.load(std::memory_order_relaxed) & SharedCopyWords::kRefused) != 0;
  }
  std::uint32_t giver() const { return words_.giver.load(std::memory_order_relaxed); }

 private:
  SharedCopyWords& words_;
  std::uint32_t number_;
  std::uint64_t bytes_ = 0;
  std::uint64_t pieces_ = 0;
  std::uint32_t mine_ = 0;    // pieces
  std::uint32_t theirs_ = 0;  // known once it is closed
};

// The side that helps.
class SharedCopyGiver {
 public:
  explicit SharedCopyGiver(SharedCopyWords& words) : words_(words) {}

  struct Piece : SharedCopyOffer {
    std::uint32_t copy = 0;  // the number of that copy
  };
  // Whether there is a copy at all, of which pieces may be left. The cheaper question.
  bool is_asked() const {
    return SharedCopy::is_open(words_.ticket.load(std::memory_order_relaxed));
  }
  // A piece that is this side's to copy, which it does before it says done(), or refuses; none if
  // there is none. `fits` tells of an offer, before a piece of it is taken, whether it can be.
  template <class Fits>
  std::optional<Piece> take(std::uint32_t process, const Fits& fits) {
    std::uint64_t ticket = words_.ticket.load(std::memory_order_acquire);
    const std::uint32_t next = SharedCopy::piece_of(ticket);
    const std::uint32_t copy = SharedCopy::number_of(ticket);
    if (std::exchange(copy_, copy) != copy) taken_ = 0;
    Piece whole{offered(), copy};
    const std::uint64_t pieces = SharedCopy::pieces_of(whole.bytes);
    // Not by their length alone: where no copy is open, the words may be half of the next one. A
    // ticket that counts fewer pieces than were taken here has been turned back.
    if (!SharedCopy::is_open(ticket) || next < taken_ || next >= pieces || !fits(whole)) {
      return std::nullopt;
    }
    words_.giver.store(process, std::memory_order_relaxed);
    if (!words_.ticket.compare_exchange_strong(ticket, ticket + 1, std::memory_order_acq_rel)) {
      return std::nullopt;
    }
    const SharedPiece piece = SharedCopy::piece(pieces - ++taken_, whole.bytes);
    whole.from += piece.at;
    whole.to += piece.at;
    whole.operand += piece.at;
    whole.bytes = piece.bytes;
    return whole;
  }
  // Whether the other side still waits for it: to be asked right before it is copied.
  bool is_wanted(const Piece& piece) const {
    return SharedCopy::number_of(words_.ticket.load(std::memory_order_acquire)) == piece.copy;
  }
  void done() { words_.given.fetch_add(1, std::memory_order_release); }
  // It cannot be copied from this side. The other one has to.
  void refuse() {
    words_.given.fetch_or(SharedCopyWords::kRefused, std::memory_order_relaxed);
    done();
  }

 private:
  // Relaxed and once: with a ticket that has not changed meanwhile they belong to it.
  SharedCopyOffer offered() const {
    const std::uint64_t word = words_.bytes.load(std::memory_order_relaxed);
    const std::uint32_t how = words_.combination.load(std::memory_order_relaxed);
    return {.from = words_.from.load(std::memory_order_relaxed),
            .to = words_.to.load(std::memory_order_relaxed),
            .bytes = word & ~SharedCopyWords::kHow,
            .past_caches = (word & SharedCopyWords::kPastCaches) != 0,
            .by_kernel = (word & SharedCopyWords::kByKernel) != 0,
            .operand = words_.operand.load(std::memory_order_relaxed),
            .combination = how & ~SharedCopyWords::kOperandLast,
            .operand_last = (how & SharedCopyWords::kOperandLast) != 0};
  }

  SharedCopyWords& words_;
  std::uint32_t copy_ = 0;   // the number of the last one that was looked at
  std::uint32_t taken_ = 0;  // pieces of it, by this side
};

}  // namespace catenary
