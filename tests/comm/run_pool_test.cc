#include "src/comm/run_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace catenary {
namespace {

// As many as were taken at once, each of so many messages.
std::vector<std::unique_ptr<GroupRun>> taken(RunPool& pool, std::size_t runs,
                                             std::size_t messages) {
  std::vector<std::unique_ptr<GroupRun>> all;
  for (std::size_t i = 0; i < runs; ++i) {
    all.push_back(pool.take());
    all.back()->expect_messages(messages, false);
  }
  return all;
}

std::uint64_t given_back(RunPool& pool, std::vector<std::unique_ptr<GroupRun>> runs) {
  std::uint64_t most = 0;
  for (auto& run : runs) {
    pool.give_back(std::move(run));
    most = std::max(most, pool.kept_bytes());
  }
  return most;
}

TEST(RunPool, gives_the_run_that_came_back_last) {
  RunPool pool;
  auto runs = taken(pool, 3, 1);
  const GroupRun* last = runs.back().get();
  given_back(pool, std::move(runs));
  EXPECT_EQ(pool.take().get(), last);
}

TEST(RunPool, keeps_what_a_program_has_that_enqueues_far_ahead) {
  RunPool pool;
  given_back(pool, taken(pool, 1000, 7));
  std::vector<std::unique_ptr<GroupRun>> again;
  for (int i = 0; i < 1000; ++i) again.push_back(pool.take());
  const std::size_t of_new_one = std::make_unique<GroupRun>()->held_bytes();
  for (const auto& run : again) EXPECT_GT(run->held_bytes(), of_new_one);
  EXPECT_EQ(pool.kept_bytes(), 0u);
}

// However its runs are taken and come back: also if some are taken while many are on their way.
TEST(RunPool, keeps_no_more_than_so_many_bytes) {
  for (const std::size_t messages : {1, 48, 512, 8190}) {
    RunPool pool;
    const std::uint64_t of_one = taken(pool, 1, messages).front()->held_bytes();
    for (int round = 0; round < 3; ++round) {
      auto runs = taken(pool, 3000 / (1 + messages / 100), messages);
      auto more = taken(pool, 100, messages);
      EXPECT_LT(given_back(pool, std::move(runs)), RunPool::kMostBytes + of_one);
      EXPECT_LT(given_back(pool, taken(pool, 5, messages)), RunPool::kMostBytes + of_one);
      EXPECT_LT(given_back(pool, std::move(more)), RunPool::kMostBytes + of_one);
    }
  }
}

}  // namespace
}  // namespace catenary
