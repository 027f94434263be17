// What a schedule becomes before it runs, where it sends to itself.
#include "src/engine/plan.h"

#include <gtest/gtest.h>

#include "src/base/error.h"
#include "tests/engine/loopback_rank.h"

namespace catenary {
namespace {

class OwnMessage : public testing::Test {
 protected:
  Plan compiled(const std::vector<Step>& steps, bool scaled = false) {
    return compile({.chunk_count = 1, .steps = steps}, std::vector<Lending>(steps.size()), 0,
                   Channel::kCollective, scaled, ranks_[0]->links);
  }
  void expect_refused(const std::vector<Step>& steps) {
    try {
      compiled(steps);
      ADD_FAILURE() << "compiled";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInternal);
      EXPECT_STREQ(error.what(), "a schedule takes its own message outside of a fold");
    }
  }

 private:
  const Config config_;
  const std::vector<std::unique_ptr<LoopbackRank>> ranks_ = ranks_of(2, config_);
};

constexpr Step kToItself{.src = input(0), .send_to = 0};
constexpr Step kFoldOwn{.recv_from = 0, .dst = carry(0)};
constexpr Step kFoldOther{.recv_from = 1, .src = carry(0), .dst = output(0)};
constexpr Step kTakeOwn{.recv_from = 0, .dst = output(0)};

TEST_F(OwnMessage, is_read_in_place_by_a_fold) {
  const Plan plan = compiled({kToItself, kFoldOwn, kFoldOther});
  ASSERT_EQ(plan.steps.size(), 1u);
  ASSERT_EQ(plan.steps[0].fold_count, 2);
  EXPECT_EQ(plan.fold_sources[0].recv, nullptr);
  EXPECT_EQ(plan.fold_sources[0].own, input(0));
}

TEST_F(OwnMessage, is_sent_where_it_is_scaled_on_the_way) {
  const Plan plan = compiled({kToItself, kFoldOwn, kFoldOther}, true);
  ASSERT_EQ(plan.steps.size(), 2u);
  EXPECT_NE(plan.steps[0].send, nullptr);
  EXPECT_NE(plan.fold_sources[0].recv, nullptr);
}

// It would be dropped, and waited for in vain.
TEST_F(OwnMessage, that_no_fold_takes_is_refused) {
  expect_refused({kToItself, kTakeOwn});
  expect_refused({kToItself, kFoldOwn, kFoldOther, kTakeOwn});
}

using Sends = OwnMessage;

TEST_F(Sends, are_listed_once_a_link) {
  const Plan plan = compiled({{.src = input(0), .send_to = 1},
                              {.recv_from = 1, .dst = output(0)},
                              {.src = output(0), .send_to = 1}});
  ASSERT_EQ(plan.sends.size(), 1u);
  EXPECT_EQ(plan.sends[0].peer, 1);
  EXPECT_EQ(plan.sends[0].link, plan.steps[0].send);
}

TEST_F(Sends, of_input_the_first_one_is_known) {
  const Step keeps{.src = input(0), .dst = output(0)};
  EXPECT_FALSE(compiled({keeps, {.src = output(0), .send_to = 1}}).sent_first);
  const Step sums{.recv_from = 1, .src = input(1), .send_to = 1};
  const Step sends{.src = input(2), .send_to = 1};
  EXPECT_EQ(compiled({keeps, sums, sends, {.src = input(3), .send_to = 1}}).sent_first, input(2));
}

using Output = OwnMessage;

TEST_F(Output, is_for_good_if_no_later_step_reads_it) {
  const std::vector<Step> steps = {{.recv_from = 1, .dst = output(0)},
                                   {.src = output(0), .send_to = 1},
                                   {.recv_from = 1, .dst = output(1)},
                                   {.recv_from = 1, .dst = output(2), .send_to = 1},
                                   {.src = input(0), .dst = scratch(0)}};
  const Plan plan = compiled(steps);
  std::vector<bool> for_good;
  for (const PlannedStep& step : plan.steps) for_good.push_back(step.for_good);
  EXPECT_EQ(for_good, (std::vector<bool>{false, false, true, true, false}));
}

}  // namespace
}  // namespace catenary
