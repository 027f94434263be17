#include "src/collective/traffic.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "src/collective/algorithms.h"

namespace catenary {
namespace {

TEST(Traffic, has_the_steps_with_each_peer_in_order) {
  Traffic traffic;  // from one schedule to the next
  for (const Algorithm& algorithm : algorithms()) {
    const Place at{.rank = 3, .ranks = 8, .root = 1, .box = 4, .window = 3};
    if (!algorithm.runs_on(at)) continue;
    const Schedule schedule = schedule_of(algorithm, at);
    traffic.make(schedule, at.ranks);
    for (int peer = 0; peer < at.ranks; ++peer) {
      std::vector<std::uint32_t> sends;
      std::vector<std::uint32_t> receives;
      for (std::uint32_t i = 0; i < schedule.steps.size(); ++i) {
        if (schedule.steps[i].send_to == peer) sends.push_back(i);
        if (schedule.steps[i].recv_from == peer) receives.push_back(i);
      }
      EXPECT_TRUE(std::ranges::equal(traffic.sends_to(peer), sends)) << algorithm.name;
      EXPECT_TRUE(std::ranges::equal(traffic.receives_from(peer), receives)) << algorithm.name;
    }
  }
}

TEST(Traffic, of_no_steps_is_none) {
  const Traffic traffic(Schedule{}, 2);
  EXPECT_TRUE(traffic.sends_to(0).empty());
  EXPECT_TRUE(traffic.receives_from(1).empty());
}

}  // namespace
}  // namespace catenary
