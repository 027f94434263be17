// Where messages to several peers lie, and for how long.
#include "src/transport/stage_ring.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <random>
#include <utility>

#include "src/base/error.h"

namespace catenary {
namespace {

constexpr std::size_t kBytes = 65536;
constexpr std::size_t kPart = 16384;
constexpr std::size_t kGap = StageRing::kGapBytes;

// One of those who read it, with a ring that has gone nearly all the way round its numbers.
class Reader {
 public:
  Reader(StageRing& stage, int rank) : stage_(stage), rank_(rank) { pretend(kBefore); }
  ~Reader() { stage_.forget(producer_); }

  void lend(ByteView memory) {
    const Loan loan = stage_.lend(memory, rank_, producer_);
    send(sizeof loan);
  }
  void send(std::size_t bytes = 8) {
    ASSERT_FALSE(producer_.try_acquire(bytes).empty());
    producer_.commit(bytes);
  }
  void take(int messages = 1) {
    for (; messages > 0; --messages) {
      ASSERT_FALSE(consumer_.try_peek().empty());
      consumer_.release();
    }
  }
  // Says that it has released so many messages in all.
  void pretend(std::uint32_t released) {
    reinterpret_cast<std::atomic<std::uint32_t>*>(memory_.data())->store(released);
  }
  static constexpr std::uint32_t kBefore = 0xfffffffc;

 private:
  static constexpr SlotRingShape kShape{32, 64};
  StageRing& stage_;
  int rank_;
  Mapping memory_ = Mapping::anonymous(kShape.bytes());
  SlotProducer producer_{memory_.data(), kShape, kBefore};
  SlotConsumer consumer_{memory_.data(), kShape, kBefore};
};

class Stages : public testing::Test {
 protected:
  // Lends it to both.
  std::byte* place(std::size_t bytes) {
    std::byte* const memory = stage_.try_place(bytes);
    if (memory == nullptr) return nullptr;
    for (auto& reader : readers_) reader->lend({memory, bytes});
    return memory;
  }
  std::size_t at(const std::byte* memory) const {
    return static_cast<std::size_t>(memory - memory_.data());
  }
  void both_take() {
    for (auto& reader : readers_) reader->take();
  }

  Mapping memory_ = Mapping::anonymous(kBytes);
  StageRing stage_{memory_.data(), kBytes};
  std::unique_ptr<Reader> readers_[2] = {std::make_unique<Reader>(stage_, 5),
                                         std::make_unique<Reader>(stage_, 6)};
};

TEST_F(Stages, a_piece_is_free_again_when_all_of_its_readers_have_taken_it) {
  EXPECT_EQ(at(place(kPart)), 0u);
  EXPECT_EQ(at(place(kPart)), kPart + kGap);
  EXPECT_EQ(at(place(kPart)), 2 * (kPart + kGap));
  EXPECT_EQ(place(kPart), nullptr);
  readers_[0]->take();
  EXPECT_EQ(place(kPart), nullptr);
  EXPECT_EQ(stage_.holder(), 6);
  readers_[1]->take(2);
  EXPECT_EQ(place(kPart), nullptr) << "it would touch the second piece";
  EXPECT_EQ(stage_.holder(), 5);
  readers_[0]->take();
  EXPECT_EQ(at(place(kPart)), 0u);
}

TEST_F(Stages, pieces_are_freed_in_their_order) {
  place(kPart);
  stage_.try_place(kPart);  // of which nothing is lent
  place(kPart);
  EXPECT_EQ(place(kPart), nullptr);
  both_take();
  EXPECT_NE(place(kPart), nullptr);
}

TEST_F(Stages, a_reader_holds_a_piece_until_it_has_taken_its_last_message) {
  std::byte* const memory = place(2 * kPart);
  readers_[0]->lend({memory + kPart, kPart});
  EXPECT_NE(place(kPart), nullptr);
  both_take();
  EXPECT_EQ(place(kPart), nullptr);
  EXPECT_EQ(stage_.holder(), 5);
  readers_[0]->take();
  EXPECT_EQ(at(place(kPart)), 0u);
}

// The numbers of messages go round meanwhile.
TEST_F(Stages, what_was_taken_long_ago_is_free) {
  place(kPart);
  both_take();
  for (int i = 0; i < 1000; ++i) {
    for (auto& reader : readers_) {
      reader->send();
      reader->take();
    }
  }
  EXPECT_EQ(place(stage_.most_bytes()), memory_.data());
}

TEST_F(Stages, there_is_room_for_the_longest_message_if_all_is_free) {
  EXPECT_EQ(stage_.holder(), kNobody);
  place(kPart);
  EXPECT_EQ(place(stage_.most_bytes()), nullptr);
  both_take();
  EXPECT_EQ(place(stage_.most_bytes() + 1), nullptr);
  EXPECT_EQ(at(place(stage_.most_bytes())), 0u);
}

TEST_F(Stages, no_more_than_so_many_pieces_are_held) {
  int held = 0;
  while (place(64) != nullptr) ++held;
  EXPECT_EQ(held, 16);
  for (int i = 0; i < 100; ++i) {
    both_take();
    EXPECT_NE(place(64), nullptr) << i;
  }
}

TEST_F(Stages, what_is_being_read_stays_when_a_link_ends) {
  place(kPart);
  readers_[1].reset();
  readers_[0]->take();
  EXPECT_EQ(stage_.try_place(stage_.most_bytes()), nullptr);
}

TEST_F(Stages, who_has_taken_more_than_there_was_is_faulty) {
  place(kPart);
  readers_[0]->pretend(Reader::kBefore + 7);
  try {
    stage_.try_place(kPart);
    ADD_FAILURE() << "believed";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kRemote);
  }
}

// Of which only a part is used at first.
class LongStage : public testing::Test {
 protected:
  static constexpr std::size_t kFirst = StageRing::kFirstBytes;

  // Lends it; -1 where there is no room.
  std::ptrdiff_t place(std::size_t bytes) {
    std::byte* const at = stage_.try_place(bytes);
    if (at == nullptr) return -1;
    reader_.lend({at, bytes});
    return at - memory_.data();
  }
  // How far pieces of kPart reach, of which each is taken at once.
  std::size_t reach_of(std::size_t bytes) {
    std::ptrdiff_t reached = 0;
    for (std::size_t passed = 0; passed < bytes; passed += kPart + kGap) {
      const std::ptrdiff_t at = place(kPart);
      EXPECT_NE(at, -1);
      if (at == -1) break;
      reached = std::max(reached, at + static_cast<std::ptrdiff_t>(kPart));
      reader_.take();
    }
    return static_cast<std::size_t>(reached);
  }

  Mapping memory_ = Mapping::anonymous(8 * kFirst);
  StageRing stage_{memory_.data(), 8 * kFirst};
  Reader reader_{stage_, 1};
};

// Memory that was never used is slow, so little of it is, as long as little has passed.
TEST_F(LongStage, the_way_round_grows_with_what_has_passed) {
  const std::size_t first = reach_of(StageRing::kRoundsToGrow * kFirst);
  EXPECT_GT(first, kFirst / 2);
  EXPECT_LE(first, kFirst);
  const std::size_t second = reach_of(StageRing::kRoundsToGrow * kFirst);
  EXPECT_GT(second, kFirst);
  EXPECT_LE(second, 2 * kFirst);
  const std::size_t last = reach_of(100 * kFirst);
  EXPECT_GT(last, 7 * kFirst);
  EXPECT_LE(last, 8 * kFirst);
}

// But where ranks share cores, only of those who run ahead of their readers.
TEST_F(LongStage, in_a_crowd_what_all_have_taken_is_overwritten) {
  stage_.note_crowding(true);
  EXPECT_LE(reach_of(100 * kFirst), kFirst);
  place(kPart);  // from now on one is always held
  const std::size_t reached = reach_of(100 * kFirst);
  EXPECT_GT(reached, 7 * kFirst);
  EXPECT_LE(reached, 8 * kFirst);
}

// Who begins another round has half of it before him; who comes to the end of that all the same
// finds the next round longer.
TEST_F(LongStage, who_runs_ahead_is_given_a_longer_way) {
  constexpr std::ptrdiff_t kRoom = kFirst / 4;
  const auto lay = [&] { return place(kRoom - kGap); };
  for (int i = 0; i < 4; ++i) EXPECT_EQ(lay(), i * kRoom);
  reader_.take();
  EXPECT_EQ(lay(), 4 * kRoom) << "with a quarter of the way free";
  reader_.take(3);
  EXPECT_EQ(lay(), 0) << "with most of it free";
  for (int i = 1; i < 3; ++i) EXPECT_EQ(lay(), i * kRoom);
  EXPECT_EQ(lay(), -1) << "the fourth would touch the fifth, which is held";
  reader_.take(4);
  for (int i = 3; i < 10; ++i) EXPECT_EQ(lay(), i * kRoom) << "twice as long";
}

// By a model that only knows who holds what.
TEST(Stage, what_is_held_is_never_overwritten) {
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    const std::size_t bytes = 64 * (1 + random() % 8192);
    const Mapping memory = Mapping::anonymous(bytes);
    StageRing stage(memory.data(), bytes);
    stage.note_crowding(seed % 2 == 0);
    Reader reader(stage, 1);
    std::deque<std::pair<std::size_t, std::size_t>> held;  // begin and end
    for (int step = 0; step < 300; ++step) {
      const std::size_t size = 1 + random() % (random() % 8 == 0 ? bytes : 1 + bytes / 8);
      std::byte* const at = stage.try_place(size);
      const bool must_fit = held.empty() && size <= stage.most_bytes();
      ASSERT_TRUE(at != nullptr || !must_fit) << seed;
      if (at != nullptr) {
        const auto begin = static_cast<std::size_t>(at - memory.data());
        ASSERT_LE(begin + size, bytes) << seed;
        for (const auto& [from, to] : held) {
          ASSERT_TRUE(begin >= to || begin + size <= from) << seed;
        }
        held.emplace_back(begin, begin + size);
        reader.lend({at, size});
      }
      for (auto left = random() % 3; left > 0 && !held.empty(); --left) {
        reader.take();
        held.pop_front();
      }
    }
  }
}

// The next short ones stay near.
TEST_F(LongStage, a_long_piece_leaves_the_way_as_it_was) {
  stage_.note_crowding(true);
  EXPECT_EQ(place(3 * kFirst), 0);
  reader_.take();
  EXPECT_LE(reach_of(100 * kPart), kFirst);
}

TEST(Stage, a_way_that_is_full_becomes_longer) {
  constexpr std::size_t kFirst = StageRing::kFirstBytes;
  constexpr std::size_t kThird = kFirst / 3;
  const Mapping memory = Mapping::anonymous(3 * kFirst);
  StageRing stage(memory.data(), 3 * kFirst);
  Reader reader(stage, 1);
  for (int i = 0; i < 8; ++i) {
    std::byte* const at = stage.try_place(kThird);
    ASSERT_EQ(at, memory.data() + static_cast<std::size_t>(i) * (kThird / 64 * 64 + 64 + kGap));
    reader.lend({at, kThird});
  }
  EXPECT_EQ(stage.try_place(kThird), nullptr);
  EXPECT_EQ(stage.holder(), 1);
}

// Where the last one lay its readers' caches have it.
TEST(Stage, long_pieces_have_two_places_in_turn) {
  constexpr std::size_t kLong = 2 * StageRing::kFirstBytes;
  const Mapping memory = Mapping::anonymous(8 * kLong);
  StageRing stage(memory.data(), 8 * kLong);
  Reader reader(stage, 1);
  for (int i = 0; i < 4; ++i) {
    std::byte* const at = stage.try_place(kLong);
    ASSERT_EQ(at, memory.data() + (i % 2 == 0 ? 0 : kLong + kGap));
    reader.lend({at, kLong});
    reader.take();
  }
}

TEST(Stage, without_memory_takes_nothing) {
  StageRing none(nullptr, 0);
  EXPECT_EQ(none.most_bytes(), 0u);
  EXPECT_EQ(none.try_place(1), nullptr);
}

}  // namespace
}  // namespace catenary
