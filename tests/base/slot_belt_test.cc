#include "src/base/slot_belt.h"

#include <gtest/gtest.h>

#include <deque>
#include <random>

namespace catenary {
namespace {

constexpr std::size_t kGap = SlotBelt::kGapBytes;

// What a ring does with a belt: messages in slots, released in order.
class Belted {
 public:
  Belted(std::size_t belt_bytes, std::uint32_t slots)
      : belt_(belt_bytes, slots), belt_bytes_(belt_bytes), slots_(slots) {}

  // As after so much traffic that it is as long as it gets.
  Belted& grown() {
    for (int i = 0; i < 64; ++i) belt_.grow_with(SlotBelt::kRoundsToGrow * belt_bytes_);
    return *this;
  }

  // Where it lies; -1: at home.
  long send(std::size_t bytes) {
    std::optional<std::size_t> place;
    if (belt_.takes(bytes)) place = belt_.try_place(bytes);
    if (place) {
      belt_.lay(slot_, *place, bytes);
    } else {
      belt_.pass(slot_);
    }
    belt_.grow_with(bytes);
    held_.push_back({slot_, place, bytes});
    slot_ = slot_ + 1 == slots_ ? 0 : slot_ + 1;
    check_apart();
    return place ? static_cast<long>(*place) : -1;
  }
  void release(std::size_t count) {
    held_.erase(held_.begin(), held_.begin() + static_cast<std::ptrdiff_t>(count));
    belt_.free_but(static_cast<std::uint32_t>(held_.size()),
                   held_.empty() ? slot_ : held_.front().slot);
  }
  std::size_t held() const { return held_.size(); }

 private:
  struct Message {
    std::uint32_t slot;
    std::optional<std::size_t> place;
    std::size_t bytes;
  };

  // The newest from all others that are held, and from the end of the belt.
  void check_apart() const {
    const Message& newest = held_.back();
    if (!newest.place) return;
    ASSERT_LE(*newest.place + newest.bytes, belt_bytes_);
    for (std::size_t i = 0; i + 1 < held_.size(); ++i) {
      const Message& other = held_[i];
      if (!other.place) continue;
      ASSERT_TRUE(*newest.place >= *other.place + other.bytes ||
                  *other.place >= *newest.place + newest.bytes)
          << newest.bytes << " at " << *newest.place << " over " << other.bytes << " at "
          << *other.place;
    }
  }

  SlotBelt belt_;
  std::size_t belt_bytes_;
  std::uint32_t slots_;
  std::uint32_t slot_ = 0;
  std::deque<Message> held_;
};

TEST(SlotBelt, messages_follow_each_other_with_gaps_and_begin_anew_at_the_end) {
  Belted belt = Belted(32768, 4).grown();
  EXPECT_EQ(belt.send(7168), 0);
  EXPECT_EQ(belt.send(7110), static_cast<long>(7168 + kGap));
  EXPECT_EQ(belt.send(7168), static_cast<long>(2 * (7168 + kGap)));
  EXPECT_EQ(belt.send(7168), static_cast<long>(3 * (7168 + kGap))) << "a belt ends with a gap";
  belt.release(4);
  EXPECT_EQ(belt.send(7168), 0);
}

TEST(SlotBelt, what_is_held_is_not_overtaken) {
  Belted belt = Belted(32768, 8).grown();
  for (int i = 0; i < 4; ++i) EXPECT_GE(belt.send(4000), 0);
  belt.release(1);
  EXPECT_GE(belt.send(4000), 0);
  EXPECT_GE(belt.send(4000), 0);
  EXPECT_EQ(belt.send(4000), -1) << "the second message is still held where the first one was";
  belt.release(2);
  EXPECT_EQ(belt.send(4000), 0);
}

TEST(SlotBelt, short_messages_and_long_ones_stay_at_home) {
  Belted belt = Belted(SlotBelt::kFirstBytes, 16).grown();
  EXPECT_EQ(belt.send(SlotBelt::kLeastBytes - 1), -1);
  EXPECT_EQ(belt.send(SlotBelt::kFirstBytes / 16), -1);
  EXPECT_EQ(belt.send(SlotBelt::kLeastBytes), 0);
}

TEST(SlotBelt, grows_with_what_has_passed) {
  Belted belt(4 * SlotBelt::kFirstBytes, 2);
  const std::size_t bytes = SlotBelt::kFirstBytes / 4;
  std::size_t passed = 0;
  long furthest = 0;
  for (; furthest < static_cast<long>(SlotBelt::kFirstBytes); passed += bytes) {
    const long place = belt.send(bytes);
    EXPECT_EQ(place == -1, passed < SlotBelt::kRoundsToGrow * SlotBelt::kFirstBytes) << passed;
    furthest = std::max(furthest, place);
    belt.release(1);
    ASSERT_LT(passed, 100 * SlotBelt::kFirstBytes) << "it never grew";
  }
  EXPECT_GE(passed, 2 * SlotBelt::kRoundsToGrow * SlotBelt::kFirstBytes);
}

TEST(SlotBelt, without_bytes_takes_nothing) {
  Belted belt(0, 2);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(belt.send(std::size_t{1} << i), -1);
    belt.release(1);
  }
}

// Whatever comes and goes, nothing is laid over what is held: Belted looks.
TEST(SlotBelt, random_messages_lie_apart) {
  std::mt19937_64 random(7);
  for (const std::size_t bytes : {32768u, 65536u, 1u << 20}) {
    for (const std::uint32_t slots : {2u, 3u, 16u}) {
      Belted belt = Belted(bytes, slots).grown();
      int placed = 0;
      const std::size_t longest = bytes / slots + 2048;
      for (int i = 0; i < 20'000 && !testing::Test::HasFailure(); ++i) {
        if (belt.held() == slots || (belt.held() > 0 && random() % 3 == 0)) {
          belt.release(1 + random() % belt.held());
        }
        placed += belt.send(1 + random() % (random() % 4 == 0 ? longest : 3000)) >= 0 ? 1 : 0;
      }
      EXPECT_GT(placed, 1000) << bytes << " bytes, " << slots << " slots";
    }
  }
}

}  // namespace
}  // namespace catenary
