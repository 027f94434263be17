#include "tools/rounds.h"

#include <gtest/gtest.h>

namespace catenary {
namespace {

constexpr double kClose = 1.1;

Runner runner_of(double ns, std::size_t rounds) {
  Runner runner;
  for (std::size_t i = 0; i < rounds; ++i) {
    // A few percent up and down, not in step with the communicators' turns.
    runner.ns.push_back(ns * (1 + 0.01 * static_cast<double>(i % 3)));
  }
  return runner;
}

TEST(Rounds, quantiles_are_of_the_sorted) {
  EXPECT_EQ(quantile({5, 1, 4, 2, 3}, 0.5), 3);
  EXPECT_EQ(quantile({5, 1, 4, 2, 3}, 0), 1);
  EXPECT_EQ(quantile({5, 1, 4, 2, 3}, 1), 5);
  EXPECT_EQ(quantile({7}, 0.15), 7);
}

TEST(Rounds, what_is_typical_is_the_mean_of_the_communicators) {
  Runner runner;
  runner.ns = {10, 20, 10, 20, 1000, 20};
  EXPECT_EQ(runner.median(), 15);
}

TEST(Rounds, few_of_them_make_nothing_clear) {
  EXPECT_FALSE(is_clear(runner_of(300, 4), runner_of(100, 4), kClose));
  EXPECT_FALSE(is_clear(runner_of(100, 0), runner_of(100, 0), kClose));
}

TEST(Rounds, enough_of_them_make_clear_what_is_close_and_what_is_not) {
  EXPECT_TRUE(is_clear(runner_of(100, 16), runner_of(100, 16), kClose));
  EXPECT_TRUE(is_clear(runner_of(130, 16), runner_of(100, 16), kClose));
}

TEST(Rounds, what_is_now_close_and_now_not_is_not_clear) {
  Runner wild = runner_of(100, 16);
  for (std::size_t i = 0; i < wild.ns.size(); ++i) wild.ns[i] *= i % 2 == 0 ? 1.0 : 1.3;
  EXPECT_FALSE(is_clear(wild, runner_of(100, 16), kClose));
}

TEST(Rounds, only_algorithms_that_are_far_behind_fall_out) {
  std::vector<Runner> runners = {runner_of(200, 16), runner_of(100, 16), runner_of(120, 16),
                                 runner_of(140, 16), runner_of(200, 16)};
  runners[0].is_algorithm = false;
  constexpr std::size_t kJudged = 4;
  EXPECT_TRUE(sift(runners, kJudged, kClose));
  EXPECT_FALSE(runners[0].is_out);
  EXPECT_FALSE(runners[1].is_out);
  EXPECT_FALSE(runners[2].is_out);
  EXPECT_TRUE(runners[3].is_out);
  EXPECT_FALSE(runners[kJudged].is_out);
}

// However much faster the library's own choice seems to be than itself, forced.
TEST(Rounds, the_default_is_no_rival) {
  std::vector<Runner> runners = {runner_of(50, 4), runner_of(100, 4), runner_of(101, 4)};
  runners[0].is_algorithm = false;
  EXPECT_TRUE(sift(runners, 1, kClose));
  EXPECT_FALSE(runners[2].is_out);
}

// The library's choice is no algorithm, and who is out has old times.
TEST(Rounds, the_best_is_an_algorithm_that_is_in_the_running) {
  std::vector<Runner> runners = {runner_of(50, 4), runner_of(60, 4), runner_of(101, 4),
                                 runner_of(100, 4)};
  runners[0].is_algorithm = false;
  runners[1].is_out = true;
  EXPECT_EQ(best_of(runners), 3u);
}

TEST(Rounds, a_second_look_is_at_the_judged_one_and_its_best_rivals) {
  std::vector<Runner> runners = {runner_of(50, 4), runner_of(103, 4), runner_of(101, 4),
                                 runner_of(104, 4), runner_of(102, 4)};
  runners[0].is_algorithm = false;
  runners[2].is_out = true;
  constexpr std::size_t kJudged = 3;
  start_again(runners, kJudged);
  for (const std::size_t i : {0, 1, 3, 4}) {
    EXPECT_TRUE(runners[i].ns.empty() && !runners[i].is_out) << i;
  }
  EXPECT_TRUE(runners[2].is_out);
  EXPECT_EQ(runners[2].ns.size(), 4u);
}

TEST(Rounds, an_only_algorithm_has_no_rivals) {
  std::vector<Runner> runners = {runner_of(50, 4), runner_of(100, 4)};
  runners[0].is_algorithm = false;
  start_again(runners, 1);
  EXPECT_FALSE(runners[0].is_out);
  EXPECT_FALSE(runners[1].is_out);
}

}  // namespace
}  // namespace catenary
