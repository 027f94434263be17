#include "src/comm/recent_outputs.h"

#include <gtest/gtest.h>

namespace catenary {
namespace {

constexpr std::size_t kMega = 1 << 20;

// Addresses that nobody looks at.
const std::byte* at(std::size_t offset) {
  return reinterpret_cast<const std::byte*>(offset + 4096);
}

TEST(RecentOutputs, are_there_until_as_much_as_the_caches_hold_went_through_them) {
  RecentOutputs recent(8 * kMega);
  EXPECT_FALSE(recent.note(at(0), kMega, 4 * kMega));
  EXPECT_TRUE(recent.note(at(0), kMega, 4 * kMega));
  EXPECT_FALSE(recent.note(at(kMega), kMega, 4 * kMega));
  EXPECT_FALSE(recent.note(at(2 * kMega), kMega, 4 * kMega));
  EXPECT_TRUE(recent.note(at(0), kMega, 4 * kMega)) << "8 MB later";
  EXPECT_TRUE(recent.note(at(kMega), kMega, 4 * kMega + 1)) << "8 MB later";
  EXPECT_FALSE(recent.note(at(2 * kMega), kMega, 4 * kMega)) << "a byte more later";
}

TEST(RecentOutputs, are_there_if_they_lie_within_one) {
  RecentOutputs recent(8 * kMega);
  recent.note(at(0), kMega, kMega);
  EXPECT_TRUE(recent.note(at(kMega - 1), 1, kMega));
  EXPECT_FALSE(recent.note(at(kMega), 1, kMega));
}

TEST(RecentOutputs, are_there_in_pieces_after_they_were_as_a_whole) {
  RecentOutputs recent(8 * kMega);
  recent.note(at(0), 4 * kMega, 4 * kMega);
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_TRUE(recent.note(at(i * kMega / 2), kMega / 2, kMega)) << "piece " << i;
  }
  EXPECT_FALSE(recent.note(at(4 * kMega), kMega, kMega));
}

TEST(RecentOutputs, are_forgotten_where_there_are_too_many) {
  RecentOutputs recent(SIZE_MAX);
  for (std::size_t i = 0; i < 64; ++i) EXPECT_FALSE(recent.note(at(i * kMega), kMega, 0));
  for (std::size_t i = 0; i < 64; ++i) EXPECT_TRUE(recent.note(at(i * kMega), kMega, 0));
  EXPECT_FALSE(recent.note(at(64 * kMega), kMega, 0));
  EXPECT_FALSE(recent.note(at(0), kMega, 0)) << "the oldest made room";
  EXPECT_TRUE(recent.note(at(2 * kMega), kMega, 0));
}

}  // namespace
}  // namespace catenary
