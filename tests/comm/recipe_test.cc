// Which recipes are kept, and for which requests they are good.
#include "src/comm/recipe.h"

#include <gtest/gtest.h>

namespace catenary {
namespace {

OperationRequest request_of(std::size_t count, int root = 0) {
  return {.kind = Collective::kBroadcast, .count = count, .type = DataType::kFloat32, .root = root};
}

void write(RecipeBook& book, const OperationRequest& request, bool repeatable = true) {
  Recipe& recipe = book.next();
  recipe.repeatable = repeatable;
  recipe.count = request.count;
  recipe.type = request.type;
  recipe.reduction = request.reduction.name;
  recipe.root = request.root;
  recipe.mark = request.mark;
}

TEST(RecipeBook, finds_what_was_written_for_a_request_like_it) {
  RecipeBook book;
  EXPECT_EQ(book.find(request_of(1)), nullptr);
  write(book, request_of(1));
  write(book, request_of(2));
  for (const std::size_t count : {1u, 2u, 1u}) {
    Recipe* const found = book.find(request_of(count));
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(found->count, count);
  }
  EXPECT_EQ(book.find(request_of(3)), nullptr);
  EXPECT_EQ(book.find(request_of(1, 1)), nullptr);
  OperationRequest other = request_of(1);
  other.type = DataType::kInt32;
  EXPECT_EQ(book.find(other), nullptr);
  other = request_of(1);
  other.mark = 1;
  EXPECT_EQ(book.find(other), nullptr);
  other = request_of(1);
  other.reduction.name = Reduction::kMax;
  EXPECT_EQ(book.find(other), nullptr);
}

TEST(RecipeBook, forgets_the_one_that_was_not_asked_for_the_longest) {
  RecipeBook book;
  constexpr std::size_t kMany = 20;
  std::size_t kept = 0;
  for (std::size_t count = 1; count <= kMany; ++count) write(book, request_of(count));
  while (kept < kMany && book.find(request_of(kMany - kept)) != nullptr) ++kept;
  EXPECT_EQ(kept, 8u);
  for (std::size_t count = 1; count <= kMany - kept; ++count) {
    EXPECT_EQ(book.find(request_of(count)), nullptr) << count;
  }
}

TEST(RecipeBook, keeps_what_is_asked_for_again_and_again) {
  RecipeBook book;
  write(book, request_of(1));
  for (std::size_t count = 2; count <= 40; ++count) {
    write(book, request_of(count));
    ASSERT_NE(book.find(request_of(1)), nullptr) << count;
  }
}

TEST(RecipeBook, keeps_none_that_cannot_be_repeated) {
  RecipeBook book;
  write(book, request_of(1));
  for (int i = 0; i < 100; ++i) {
    write(book, request_of(2), false);
    EXPECT_EQ(book.find(request_of(2)), nullptr);
  }
  EXPECT_NE(book.find(request_of(1)), nullptr) << "they took the place of one that is of use";
}

}  // namespace
}  // namespace catenary
