#include "src/base/rounding.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

namespace catenary {
namespace {

// What is asked for is what a division and its remainder say.
std::size_t counted_up(std::size_t value, std::size_t divisor) {
  return value / divisor + (value % divisor == 0 ? 0 : 1);
}

TEST(Rounding, exact_multiples_stay_and_the_rest_goes_up) {
  EXPECT_EQ(divide_up(0, 7), 0);
  EXPECT_EQ(divide_up(1, 7), 1);
  EXPECT_EQ(divide_up(7, 7), 1);
  EXPECT_EQ(divide_up(8, 7), 2);
  EXPECT_EQ(round_up(0, 64), 0);
  EXPECT_EQ(round_up(1, 64), 64);
  EXPECT_EQ(round_up(64, 64), 64);
  EXPECT_EQ(round_up(65, 64), 128);
}

TEST(Rounding, the_type_is_that_of_the_value) {
  static_assert(divide_up(std::uint64_t{1} << 40, 3) == 366'503'875'926);
  static_assert(round_up(std::uint64_t{(1ull << 40) + 1}, 4096) == (1ull << 40) + 4096);
  EXPECT_EQ(round_up(std::size_t{5}, 4), std::size_t{8});
}

TEST(Rounding, the_quick_ones_give_the_same) {
  for (std::size_t divisor = 1; divisor <= 70; ++divisor) {
    for (std::size_t value = 0; value <= 300; ++value) {
      EXPECT_EQ(divide_up(value, divisor), counted_up(value, divisor));
      EXPECT_EQ(divide_up_quickly(value, divisor), counted_up(value, divisor));
      EXPECT_EQ(divide_down_quickly(value, divisor), value / divisor);
      EXPECT_EQ(round_up(value, divisor), counted_up(value, divisor) * divisor);
    }
  }
}

}  // namespace
}  // namespace catenary
