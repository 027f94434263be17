#include "src/transport/stage_ring.h"

#include "src/base/error.h"
#include "src/base/mapping.h"
#include "src/base/size_literals.h"

namespace catenary {

std::byte* StageRing::try_place(std::size_t bytes) {
  free_what_was_taken();
  const std::size_t room = room_for(bytes);
  std::size_t begin = 0;
  if (held_ == kMostPieces || !find_room(room, begin)) return nullptr;
  const bool runs_ahead = held_ > 0;
  ++held_;
  newest().begin = begin;
  newest().readers.clear();
  head_ = begin + room;
  if (runs_ahead || !is_crowded_) grow_with(room);
  touch(begin + bytes);
  return memory_ + begin;
}

int StageRing::holder() {
  if (held_ == 0) return kNobody;
  const auto holds = [](const Reader& reader) { return !reader.has_taken(); };
  const auto found = std::ranges::find_if(oldest().readers, holds);
  return found != oldest().readers.end() ? found->peer : kNobody;
}

Loan StageRing::lend(ByteView memory, int peer, SlotProducer& link) {
  const auto offset = static_cast<std::uint64_t>(memory.data() - memory_);
  CATENARY_ASSERT(held_ > 0 && offset >= newest().begin && offset + memory.size() <= head_);
  std::vector<Reader>& readers = newest().readers;
  const auto known = std::ranges::find(readers, &link, &Reader::link);
  if (known != readers.end()) {
    known->number = link.next_number();
  } else {
    readers.push_back({&link, link.next_number(), peer});
  }
  return {Loan::kOnStage | offset, memory.size()};
}

void StageRing::forget(const SlotProducer& link) {
  for (std::size_t i = 0; i < held_; ++i) {
    for (Reader& reader : pieces_[(first_ + i) % kMostPieces].readers) {
      if (reader.link == &link) reader.link = nullptr;
    }
  }
}

void StageRing::free_what_was_taken() {
  const auto is_taken = [](const Reader& reader) { return reader.has_taken(); };
  while (held_ > 0 && std::ranges::all_of(oldest().readers, is_taken)) {
    ++first_;
    --held_;
  }
}

// Where pieces are held, the head never comes up to the oldest one: if it is there, none is.
bool StageRing::find_room(std::size_t room, std::size_t& begin) {
  const std::size_t way = std::min(bytes_, std::max(length_, 2 * room));
  if (held_ == 0) {
    begin = head_ + room <= way ? head_ : 0;
    return room <= way;
  }
  const std::size_t tail = oldest().begin;
  begin = head_;
  if (tail >= head_) {
    if (head_ + room < tail) return true;
    lengthen(2 * length_);  // for the next round
    return false;
  }
  const bool has_room_ahead = head_ + room <= way;
  const bool has_room_below = room < tail;
  // Who begins another round soon has no more than what is below the tail, so that is much, or the
  // way becomes longer.
  if (has_room_ahead || (head_ + room <= bytes_ && !(has_room_below && tail >= way / 2))) {
    if (!has_room_ahead) lengthen(head_ + room);
    return true;
  }
  begin = 0;
  return has_room_below;
}

void StageRing::lengthen(std::size_t length) {
  if (length <= length_) return;
  length_ = std::min(length, bytes_);
  passed_ = 0;
}

void StageRing::grow_with(std::size_t room) {
  passed_ += room;
  if (passed_ >= kRoundsToGrow * length_) lengthen(2 * length_);
}

// In pieces: a page at a time takes longer.
void StageRing::touch(std::size_t end) {
  constexpr std::size_t kPiece = 64_KB;
  for (; touched_ < end; touched_ += kPiece) {
    populate(memory_ + touched_, std::min(kPiece, bytes_ - touched_));
  }
}

}  // namespace catenary
