#include "src/proof/fingerprint.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace catenary::proof {
namespace {

constexpr int kRanks = 8;

class Sums : public testing::Test {
 protected:
  Sums() { numbers_.make(kRanks, 4); }

  // The parts of so many ranks, one after the other.
  Fingerprint sum_of(std::initializer_list<int> ranks, std::size_t element = 1) const {
    Fingerprint sum = kUndefined;
    for (const int rank : ranks) {
      const Fingerprint part = numbers_.leaf(rank, element);
      sum = sum == kUndefined ? part : reduced(sum, part);
    }
    return sum;
  }
  std::string text(const Fingerprint& value) const { return numbers_.text(value, kRanks, 1); }

  Fingerprints numbers_;
};

TEST_F(Sums, every_part_once_is_the_whole_in_any_order) {
  const std::uint64_t whole = numbers_.whole(kRanks, 1);
  EXPECT_EQ(sum_of({0, 1, 2, 3, 4, 5, 6, 7}).sum, whole);
  EXPECT_EQ(sum_of({3, 7, 0, 2, 6, 5, 1, 4}).sum, whole);
}

TEST_F(Sums, a_part_that_is_missing_or_comes_twice_is_seen) {
  const std::uint64_t whole = numbers_.whole(kRanks, 1);
  EXPECT_NE(sum_of({0, 1, 2, 3, 4, 5, 6}).sum, whole);
  EXPECT_NE(sum_of({0, 1, 2, 3, 4, 5, 6, 7, 7}).sum, whole);
}

TEST_F(Sums, a_part_that_stands_in_for_another_is_seen) {
  const std::uint64_t whole = numbers_.whole(kRanks, 1);
  for (int twice = 0; twice < kRanks; ++twice) {
    for (int never = 0; never < kRanks; ++never) {
      if (twice == never) continue;
      const std::uint64_t sum = whole + numbers_.leaf(twice, 1).sum - numbers_.leaf(never, 1).sum;
      EXPECT_NE(sum, whole);
    }
  }
  EXPECT_NE(sum_of({0, 0, 0, 0, 0, 0, 0, 0}).sum, whole);
}

TEST_F(Sums, a_part_of_another_element_is_seen) {
  const Fingerprint mixed = reduced(sum_of({0, 1, 2, 3, 4, 5, 6}), numbers_.leaf(7, 2));
  EXPECT_NE(mixed.sum, numbers_.whole(kRanks, 1));
  EXPECT_NE(numbers_.whole(kRanks, 1), numbers_.whole(kRanks, 2));
}

TEST_F(Sums, a_finished_reduction_is_not_an_unfinished_one_nor_a_part_of_another) {
  const Fingerprint whole = sum_of({0, 1, 2, 3, 4, 5, 6, 7});
  EXPECT_NE(finished(whole).sum, whole.sum);
  EXPECT_NE(reduced(finished(sum_of({0, 1, 2, 3})), sum_of({4, 5, 6, 7})).sum, whole.sum);
}

TEST_F(Sums, leaves_all_differ) {
  std::set<std::uint64_t> sums;
  Fingerprints many;
  many.make(100, 100);
  for (int rank = 0; rank < 100; ++rank) {
    for (std::size_t element = 0; element < 100; ++element) {
      sums.insert(many.leaf(rank, element).sum);
    }
  }
  EXPECT_EQ(sums.size(), 10000u);
  EXPECT_FALSE(sums.contains(kUndefined.sum));
}

TEST_F(Sums, growing_changes_no_number) {
  const Fingerprint before = numbers_.leaf(5, 3);
  numbers_.make(1000, 1000);
  EXPECT_EQ(numbers_.leaf(5, 3), before);
}

TEST(Order, depends_on_sides_and_on_grouping) {
  Fingerprints numbers;
  numbers.make(3, 1);
  const Fingerprint a = numbers.leaf(0, 0);
  const Fingerprint b = numbers.leaf(1, 0);
  const Fingerprint c = numbers.leaf(2, 0);
  EXPECT_NE(reduced(a, b).order, reduced(b, a).order);
  EXPECT_NE(reduced(reduced(a, b), c).order, reduced(a, reduced(b, c)).order);
  EXPECT_EQ(reduced(reduced(a, b), c).order, reduced(reduced(a, b), c).order);
}

TEST(Order, does_not_depend_on_the_element) {
  Fingerprints numbers;
  numbers.make(2, 2);
  EXPECT_EQ(reduced(numbers.leaf(0, 0), numbers.leaf(1, 0)).order,
            reduced(numbers.leaf(0, 1), numbers.leaf(1, 1)).order);
}

TEST(Order, of_a_fold_is_that_of_its_operands_and_not_that_of_reductions_by_two) {
  Fingerprints numbers;
  numbers.make(3, 1);
  const Fingerprint a = numbers.leaf(0, 0);
  const Fingerprint b = numbers.leaf(1, 0);
  const Fingerprint c = numbers.leaf(2, 0);
  const Fingerprint abc = folded(folded(folded(kEmptyFold, a), b), c);
  EXPECT_NE(abc.order, folded(folded(folded(kEmptyFold, a), c), b).order);
  EXPECT_NE(abc.order, reduced(reduced(a, b), c).order);
  EXPECT_EQ(abc.sum, reduced(reduced(a, b), c).sum);
}

TEST_F(Sums, are_told_in_words) {
  EXPECT_EQ(text(kUndefined), "undefined");
  EXPECT_EQ(text(numbers_.leaf(3, 1)), "rank 3's element 1");
  EXPECT_EQ(text(numbers_.leaf(3, 2)), "rank 3's element 2");
  EXPECT_EQ(text(sum_of({6, 7, 0})), "a reduction of element 1 over ranks 6 to 0 only");
  EXPECT_EQ(text(sum_of({0, 1, 2, 3, 4, 5, 6, 7})), "the unfinished reduction of element 1");
  EXPECT_EQ(text(finished(sum_of({0, 1, 2, 3, 4, 5, 6, 7}))),
            "the finished reduction of element 1");
  EXPECT_EQ(text(sum_of({0, 1, 2, 3, 5, 6, 7})), "a reduction of element 1 without rank 4's part");
  EXPECT_EQ(text(sum_of({0, 1, 2, 3, 4, 5, 6, 7, 4})),
            "a reduction of element 1 with rank 4's twice");
  EXPECT_EQ(text(sum_of({0, 1, 2, 3, 5, 5, 6, 7})),
            "a reduction of element 1 without rank 4's part and with rank 5's twice");
  EXPECT_EQ(text({123, 4}), "a mixture that is no part of it");
}

}  // namespace
}  // namespace catenary::proof
