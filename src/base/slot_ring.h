// Slot ring: a one-way queue of equal slots between one producer and one consumer, in raw memory.
//
// The memory may be the heap or a memfd that two processes map; zeroed memory is an empty ring, so
// a ring needs no handshake to come into being, and costs nothing until it is touched.
//
//     offset 0       consumer's line: slots released | how it borrows | who writes | 64 bytes
//     64             producer's: whether it has withdrawn what it lent             | 64 bytes
//     128            a copy of what is lent that both make (shared_copy.h)         | 64 of 128
//     256            head of slot 0: sequence | bytes | 1080 bytes of data         | 1088 of 1152
//     1408           head of slot 1                                                |
//     ...
//     data_offset    home of slot 0                                                | slot_bytes
//                    home of slot 1 ...                                            |
//     shuttle_offset shuttle 0, shuttle 1 ...                                      | and a gap
//     belt_offset    the belt                                                      | belt_bytes
//
// A message of at most 1080 bytes travels in the head of its slot, right after the words that
// announce it, so that one of 56 bytes moves a single cache line, and one of 100 two. A longer one,
// for which it counts more that its data begins with a line, lies on a shuttle (shuttles.h), if one
// is at hand, else on the belt (slot_belt.h), or, where that does not take it, in its slot's home;
// the head says where. A slot is announced by its
// sequence number, 1 for the first message of the ring, so nothing is ever reset: what an older
// round left behind is a number that nobody waits for. Heads are written by one side only and stand
// apart, since processors fetch what follows a line that is read. (With gaps of 3 to 47 lines some
// lengths are faster by a tenth and others slower by up to a quarter.)
//
// A message may stand for memory of the producer's that it lends (how, is not the ring's business):
// a consumer says once how it can borrow, and a producer that lent has lent until the ring is
// empty. A consumer that writes to such memory says so as long as it does, and first looks whether
// it may: so a producer that has withdrawn knows whom to wait for.
//
// Each side is used by one thread at a time. Nothing waits. The caller owns the memory and keeps it
// for longer than both sides. The other side may be a faulty process: what it writes is checked
// against the bounds of the ring, and try_acquire and try_peek throw kRemote when it cannot be
// true.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

#include "src/base/error.h"
#include "src/base/fence.h"
#include "src/base/mapping.h"
#include "src/base/rounding.h"
#include "src/base/shuttles.h"
#include "src/base/size_literals.h"
#include "src/base/slot_belt.h"
#include "src/base/types.h"

namespace catenary {

struct SlotRingShape {
  std::uint32_t slots;
  std::size_t slot_bytes;      // a multiple of 64
  std::size_t belt_bytes = 0;  // a multiple of 4096

  // Counts up when anything of this changes, so that versions that differ in it do not meet.
  static constexpr int kForm = 13;
  static constexpr std::size_t kSharedCopy = 128;
  static constexpr std::size_t kFirstHead = 256;
  static constexpr std::size_t kHeadSpacing = 1152;
  static constexpr std::size_t kPageBytes = 4_KB;

  constexpr std::size_t head_offset(std::uint32_t slot) const {
    return kFirstHead + slot * kHeadSpacing;
  }
  constexpr std::size_t data_offset() const {
    // Slots of whole pages begin at pages, so that a slot touches no more of them than it must.
    const std::size_t alignment = slot_bytes % kPageBytes == 0 ? kPageBytes : 64;
    return round_up(head_offset(slots), alignment);
  }
  constexpr std::size_t data_offset(std::uint32_t slot) const {
    return data_offset() + slot * slot_bytes;
  }
  constexpr std::size_t shuttle_offset() const { return round_up(data_offset(slots), kPageBytes); }
  // Readers' processors fetch ahead, past the end of what they read.
  constexpr std::size_t shuttle_spacing() const {
    return round_up(slot_bytes + SlotBelt::kGapBytes, kPageBytes);
  }
  constexpr std::size_t belt_offset() const {
    return shuttle_offset() + Shuttles::kOfEach * shuttle_spacing();
  }
  // Whole pages, so that rings side by side never share one.
  constexpr std::size_t bytes() const { return belt_offset() + belt_bytes; }

  bool operator==(const SlotRingShape&) const = default;
};

inline constexpr std::size_t kInlineBytes = 1080;

struct alignas(64) SlotHead {
  std::atomic<std::uint32_t> sequence;
  std::atomic<std::uint32_t> bytes;
  std::byte data[kInlineBytes];

  // In place of data: where a longer message begins, counted from the ring's first byte, and
  // kPastCaches if its producer stores so now; or kOnShuttle and the number of its own for that.
  static constexpr std::uint64_t kOnShuttle = std::uint64_t{1} << 63;
  static constexpr std::uint64_t kPastCaches = std::uint64_t{1} << 62;
  std::atomic<std::uint64_t>& place() {
    return *reinterpret_cast<std::atomic<std::uint64_t>*>(data);
  }
  const std::atomic<std::uint64_t>& place() const { return const_cast<SlotHead*>(this)->place(); }
};
static_assert(SlotRingShape::kFirstHead % alignof(SlotHead) == 0 &&
              SlotRingShape::kHeadSpacing % alignof(SlotHead) == 0);
static_assert(sizeof(SlotHead) == 8 + kInlineBytes &&
              sizeof(SlotHead) < SlotRingShape::kHeadSpacing &&
              std::atomic<std::uint32_t>::is_always_lock_free &&
              std::atomic<std::uint64_t>::is_always_lock_free);

// A line is written by its side only, and read by the other one.
struct alignas(64) ConsumerLine {
  std::atomic<std::uint32_t> released;  // so many slots
  std::atomic<std::uint32_t> borrows;   // how it can
  std::atomic<std::uint32_t> writer;    // the process that writes to what was lent, or 0
};
struct alignas(64) ProducerLine {
  std::atomic<std::uint32_t> withdrawn;  // 1: what was lent
};
// What a ring begins with.
struct SlotRingLines {
  ConsumerLine consumer;
  ProducerLine producer;
};
static_assert(offsetof(ConsumerLine, released) == 0 && offsetof(ConsumerLine, borrows) == 4 &&
              offsetof(ConsumerLine, writer) == 8 && offsetof(ProducerLine, withdrawn) == 0 &&
              offsetof(SlotRingLines, consumer) == 0 && offsetof(SlotRingLines, producer) == 64 &&
              sizeof(SlotRingLines) == SlotRingShape::kSharedCopy);

// What both sides know: where things lie, and the next slot.
class SlotCursor {
 public:
  // `messages_before`: how many messages have passed through this memory already, modulo 2^32.
  SlotCursor(std::byte* memory, const SlotRingShape& shape, std::uint32_t messages_before)
      : memory_(memory),
        shape_(shape),
        next_(messages_before),
        slot_(messages_before % shape.slots) {}

  ConsumerLine& consumer() const { return lines().consumer; }
  ProducerLine& producer() const { return lines().producer; }
  SlotHead& head() const { return head_of(slot()); }
  // Of the slot after the next.
  SlotHead& second_head() const { return head_of(slot_after(slot())); }
  std::byte* at(std::size_t place) const { return memory_ + place; }
  std::size_t home() const { return shape_.data_offset(slot()); }
  std::uint32_t slot() const { return slot_.load(std::memory_order_relaxed); }
  const SlotRingShape& shape() const { return shape_; }
  // Of the message `distance` before the next one, at most as many as there are slots.
  std::uint32_t slot_before(std::uint32_t distance) const {
    return slot() >= distance ? slot() - distance : slot() + shape_.slots - distance;
  }
  // The number of the next message, counted from 0 and modulo 2^32.
  std::uint32_t next() const { return static_cast<std::uint32_t>(next_); }
  // The same without an end.
  std::uint64_t messages() const { return next_; }

  void advance() {
    ++next_;
    slot_.store(slot_after(slot()), std::memory_order_relaxed);
  }

 private:
  SlotRingLines& lines() const { return *reinterpret_cast<SlotRingLines*>(memory_); }
  std::uint32_t slot_after(std::uint32_t slot) const {
    return slot + 1 == shape_.slots ? 0 : slot + 1;
  }
  SlotHead& head_of(std::uint32_t slot) const {
    return *reinterpret_cast<SlotHead*>(memory_ + shape_.head_offset(slot));
  }

  std::byte* memory_;
  SlotRingShape shape_;
  std::uint64_t next_;
  std::atomic<std::uint32_t> slot_;  // atomic for SlotProducer::prepare()
};

class SlotProducer {
 public:
  SlotProducer(std::byte* memory, const SlotRingShape& shape, std::uint32_t messages_before = 0)
      : SlotProducer(memory, shape, messages_before, shape.belt_bytes) {}
  // `belt_bytes`: as much of the belt as it uses. `shuttles`, if any: those of both rings.
  SlotProducer(std::byte* memory, const SlotRingShape& shape, std::uint32_t messages_before,
               std::size_t belt_bytes, Shuttles* shuttles = nullptr)
      : cursor_(memory, shape, messages_before),
        released_(messages_before),
        shuttles_(shuttles),
        belt_(belt_bytes, shape.slots) {}

  // Room for 0 < bytes <= slot_bytes in the next slot, or an empty span while the ring is full.
  ByteSpan try_acquire(std::size_t bytes) {
    CATENARY_ASSERT(bytes != 0 && bytes <= cursor_.shape().slot_bytes);
    if (cursor_.next() - released_ >= cursor_.shape().slots && !see_released()) return {};
    if (bytes <= kInlineBytes) {
      acquired_bytes_ = bytes;
      return {cursor_.head().data, bytes};
    }
    if (acquired_bytes_ != bytes) {
      acquired_bytes_ = bytes;
      acquired_place_ = place_of(bytes);
    }
    return {acquired(), bytes};
  }
  // Whether the span lies in lines that this core is likely to have.
  bool is_at_hand() const {
    return acquired_bytes_ > kInlineBytes && acquired_place_ >= SlotHead::kOnShuttle;
  }

  // Fetches the lines of the head in which the next message will travel, one of so many bytes,
  // ahead of time: getting them from the consumer's core takes as long as all else about a short
  // message. Any thread, at any time.
  void prepare(std::size_t bytes) const noexcept {
    if (bytes > kInlineBytes) return;
    const SlotHead& head = cursor_.head();
    const auto* const end = head.data + bytes;
    for (auto* at = reinterpret_cast<const std::byte*>(&head); at < end; at += 64) {
      fetch_to_write(at);
    }
  }

  // The ways that the consumer has said, 0 as long as it has said nothing.
  std::uint32_t ways_to_borrow() const {
    return cursor_.consumer().borrows.load(std::memory_order_acquire);
  }
  // The number of the next message to be committed, counted from 0.
  std::uint64_t next_number() const { return cursor_.messages(); }
  // Whether the consumer has released the message of a number that was next once.
  bool has_taken(std::uint64_t number) {
    const auto is_taken = [&] {
      return number + (cursor_.next() - released_) < cursor_.messages();
    };
    if (!is_taken()) see_released();
    return is_taken();
  }
  // Whether the consumer has released all there is.
  bool drained() {
    if (cursor_.next() != released_) see_released();
    return cursor_.next() == released_;
  }
  // What was lent may be changed after this returns, once there is no writer(); the consumer can
  // tell.
  void withdraw() {
    // A read-modify-write, and a fence: the store comes before any change of what was lent.
    cursor_.producer().withdrawn.exchange(1, std::memory_order_seq_cst);
    fence_after_rmw();
  }
  // The process that writes to what was lent, or 0. Acquire: with 0 comes all that it wrote.
  std::uint32_t writer() const { return cursor_.consumer().writer.load(std::memory_order_acquire); }

  // Publishes the first 0 < bytes <= acquired of the span. Who filled it with non-temporal stores
  // has fenced them, as a release store does not order those, and may tell the reader.
  void commit(std::size_t bytes, bool past_caches = false) {
    CATENARY_ASSERT(bytes != 0 && bytes <= acquired_bytes_);
    SlotHead& head = cursor_.head();
    const bool is_long = bytes > kInlineBytes;
    if (is_long) {
      take_place(bytes);
    } else {
      belt_.pass(cursor_.slot());
    }
    // Relaxed, this and the next: ordered by the store of the sequence below.
    if (is_long) {
      const bool is_to_tell = past_caches && acquired_place_ < SlotHead::kOnShuttle;
      head.place().store(acquired_place_ | (is_to_tell ? SlotHead::kPastCaches : 0),
                         std::memory_order_relaxed);
    } else if (acquired_bytes_ > kInlineBytes) {
      // What is short travels in the head, so a large span filled with little moves.
      std::memcpy(head.data, acquired(), bytes);
    }
    head.bytes.store(static_cast<std::uint32_t>(bytes), std::memory_order_relaxed);
    // Release: who reads this number also sees the length and the data.
    head.sequence.store(cursor_.next() + 1, std::memory_order_release);
    acquired_bytes_ = 0;
    cursor_.advance();
  }

 private:
  // Of a long message in the next slot.
  std::uint64_t place_of(std::size_t bytes) {
    const auto shuttle = shuttles_ != nullptr ? shuttles_->at_hand() : std::nullopt;
    if (shuttle) {
      shuttles_->touch(*shuttle, bytes);
      return SlotHead::kOnShuttle + *shuttle;
    }
    if (!belt_.takes(bytes)) return cursor_.home();
    std::optional<std::size_t> place = belt_.try_place(bytes);
    if (!place) {
      see_released();
      place = belt_.try_place(bytes);
      if (!place) return cursor_.home();
    }
    touch_belt(*place + bytes);
    return cursor_.shape().belt_offset() + *place;
  }

  std::byte* acquired() const {
    return acquired_place_ >= SlotHead::kOnShuttle ? shuttles_->at(shuttle())
                                                   : cursor_.at(acquired_place_);
  }
  std::uint32_t shuttle() const {
    return static_cast<std::uint32_t>(acquired_place_ - SlotHead::kOnShuttle);
  }

  // The next message is one of `bytes` in the place that was acquired.
  void take_place(std::size_t bytes) {
    const std::size_t belt = cursor_.shape().belt_offset();
    if (acquired_place_ >= SlotHead::kOnShuttle) {
      shuttles_->send(shuttle());
      return belt_.pass(cursor_.slot());
    }
    if (acquired_place_ >= belt) {
      belt_.lay(cursor_.slot(), acquired_place_ - belt, acquired_bytes_);
    } else {
      belt_.pass(cursor_.slot());
    }
    belt_.grow_with(bytes);
  }

  // Brings in what the belt's first round comes to, in pieces: a page at a time takes longer.
  void touch_belt(std::size_t end) {
    constexpr std::size_t kPiece = 64_KB;
    const SlotRingShape& shape = cursor_.shape();
    while (touched_ < end) {
      populate(cursor_.at(shape.belt_offset() + touched_),
               std::min(kPiece, shape.belt_bytes - touched_));
      touched_ += kPiece;
    }
  }

  // Reads the consumer's line, which the consumer keeps writing: only when ring or belt look full.
  bool see_released() {
    // Acquire: the consumer has done reading the slots that it counts here before we overwrite
    // them.
    released_ = cursor_.consumer().released.load(std::memory_order_acquire);
    const std::uint32_t held = cursor_.next() - released_;
    if (held > cursor_.shape().slots) {
      throw_error(ErrorCode::kRemote,
                  "a peer damaged a ring: it released %u messages more than were sent; the peer's "
                  "process is faulty",
                  std::uint32_t{0} - held);
    }
    belt_.free_but(held, cursor_.slot_before(held));
    return held < cursor_.shape().slots;
  }

  SlotCursor cursor_;
  std::uint32_t released_;  // as last seen
  Shuttles* shuttles_;
  SlotBelt belt_;
  std::size_t touched_ = 0;  // bytes of the belt that have been brought in
  std::size_t acquired_bytes_ = 0;
  std::uint64_t acquired_place_ = 0;  // of what does not fit into its head
};

class SlotConsumer {
 public:
  // `shuttles`: as for the producer of the other ring.
  SlotConsumer(std::byte* memory, const SlotRingShape& shape, std::uint32_t messages_before = 0,
               Shuttles* shuttles = nullptr)
      : cursor_(memory, shape, messages_before), shuttles_(shuttles) {}

  // The oldest message not yet released, or an empty span. Looks at one line only.
  ByteView try_peek() {
    const SlotHead& head = cursor_.head();
    // Acquire: with the number come the length and the data that were stored before it.
    if (head.sequence.load(std::memory_order_acquire) != cursor_.next() + 1) return {};
    // Relaxed: ordered by the load above. Loaded once, because the other side might change it.
    const std::size_t bytes = head.bytes.load(std::memory_order_relaxed);
    if (bytes == 0 || bytes > cursor_.shape().slot_bytes) {
      throw_error(ErrorCode::kRemote,
                  "a peer damaged a ring: a message of %zu bytes in slots of %zu; the peer's "
                  "process is faulty",
                  bytes, cursor_.shape().slot_bytes);
    }
    if (bytes <= kInlineBytes) return {head.data, bytes};
    return {long_message(head, bytes), bytes};
  }

  // Whether that place is on the belt, and in the peeked message, and its producer does not write
  // past its caches.
  bool is_on_warm_belt(const std::byte* place) const {
    const SlotRingShape& shape = cursor_.shape();
    return place >= cursor_.at(shape.belt_offset()) && place < cursor_.at(shape.bytes()) &&
           !peeked_past_caches_;
  }

  // One bit for each way; what they mean, is not the ring's business.
  void say_how_it_borrows(std::uint32_t ways) {
    cursor_.consumer().borrows.store(ways, std::memory_order_release);
  }
  // Whether all that was read so far of what the producer lent was as lent.
  bool still_lent() const {
    // Our reads come before the look: if they saw a change, the look sees why.
    acquire_fence();
    return cursor_.producer().withdrawn.load(std::memory_order_relaxed) == 0;
  }

  // Whether what is lent may be written to, which this process, whose number is not 0, does until
  // end_writing().
  bool try_begin_writing(std::uint32_t process) {
    cursor_.consumer().writer.exchange(process, std::memory_order_seq_cst);
    fence_after_rmw();
    if (cursor_.producer().withdrawn.load(std::memory_order_seq_cst) == 0) return true;
    end_writing();
    return false;
  }
  // Who stored past the caches has fenced that.
  void end_writing() { cursor_.consumer().writer.store(0, std::memory_order_release); }

  // Gives the peeked slot back. Fetches the first line of the head after the next: a producer that
  // runs ahead has filled it, and getting it from there takes as long as all else about a short
  // message. Where producer and consumer take turns it costs nothing.
  void release() {
    if (peeked_shuttle_) {
      shuttles_->keep(*peeked_shuttle_);
      peeked_shuttle_.reset();
    }
    cursor_.advance();
    fetch_to_read(&cursor_.second_head());
    // Release: our reads of the slot are done before the producer sees that it may overwrite it.
    cursor_.consumer().released.store(cursor_.next(), std::memory_order_release);
  }

 private:
  const std::byte* long_message(const SlotHead& head, std::size_t bytes) {
    const SlotRingShape& shape = cursor_.shape();
    // Relaxed and once, as the length.
    const std::uint64_t said = head.place().load(std::memory_order_relaxed);
    if (said >= SlotHead::kOnShuttle && shuttles_ != nullptr) {
      peeked_shuttle_ = shuttles_->from_peer(said - SlotHead::kOnShuttle);
      return shuttles_->at(*peeked_shuttle_);
    }
    peeked_past_caches_ = (said & SlotHead::kPastCaches) != 0;
    const std::uint64_t place = said & ~SlotHead::kPastCaches;
    if (place < shape.data_offset() || place > shape.bytes() - bytes) {
      throw_error(ErrorCode::kRemote,
                  "a peer damaged a ring: a message of %zu bytes at %zu of %zu; the peer's process "
                  "is faulty",
                  bytes, place, shape.bytes());
    }
    return cursor_.at(place);
  }

  SlotCursor cursor_;
  Shuttles* shuttles_;
  std::optional<std::uint32_t> peeked_shuttle_;  // that the peeked message lies on
  bool peeked_past_caches_ = false;              // it was stored so, if it is none of those
};

}  // namespace catenary
