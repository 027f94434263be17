#include "src/base/generator.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <utility>
#include <vector>

namespace catenary {
namespace {

Generator<int> count_to(int last, int throws_at = 0) {
  for (int i = 1; i <= last; ++i) {
    if (i == throws_at) throw std::runtime_error("at that");
    co_yield i;
  }
}
Generator<int> twice_as_much(Generator<int> inner) {
  for (const int each : inner) co_yield 2 * each;
}

std::vector<int> taken_by_loop(Generator<int> numbers, bool& has_thrown) {
  std::vector<int> taken;
  try {
    for (const int each : numbers) taken.push_back(each);
  } catch (const std::runtime_error&) {
    has_thrown = true;
  }
  return taken;
}
std::vector<int> taken_one_by_one(Generator<int> numbers, bool& has_thrown) {
  std::vector<int> taken;
  try {
    while (const int* each = numbers.next()) taken.push_back(*each);
  } catch (const std::runtime_error&) {
    has_thrown = true;
  }
  return taken;
}

TEST(Generator, yields_what_the_coroutine_does_and_ends) {
  bool has_thrown = false;
  EXPECT_EQ(taken_by_loop(count_to(3), has_thrown), (std::vector{1, 2, 3}));
  EXPECT_EQ(taken_one_by_one(count_to(3), has_thrown), (std::vector{1, 2, 3}));
  EXPECT_EQ(taken_by_loop(count_to(0), has_thrown), std::vector<int>{});
  EXPECT_EQ(taken_one_by_one(twice_as_much(count_to(2)), has_thrown), (std::vector{2, 4}));
  EXPECT_FALSE(has_thrown);
}

TEST(Generator, lets_out_what_the_coroutine_throws) {
  for (const auto take : {taken_by_loop, taken_one_by_one}) {
    bool has_thrown = false;
    EXPECT_EQ(take(count_to(3, 1), has_thrown), std::vector<int>{});
    EXPECT_TRUE(std::exchange(has_thrown, false)) << "before the first";
    EXPECT_EQ(take(count_to(3, 3), has_thrown), (std::vector{1, 2}));
    EXPECT_TRUE(std::exchange(has_thrown, false)) << "after some";
    EXPECT_EQ(take(twice_as_much(count_to(3, 2)), has_thrown), (std::vector{2}));
    EXPECT_TRUE(has_thrown) << "from inside of another";
  }
}

}  // namespace
}  // namespace catenary
