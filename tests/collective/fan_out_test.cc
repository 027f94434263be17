// What goes to several ranks at once, as schedules have it.
#include "src/collective/fan_out.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "src/collective/algorithms.h"

namespace catenary {
namespace {

PlaceOf all_but(int rank) {
  return [rank](int peer) { return peer == rank ? kNowhere : std::uintptr_t{1}; };
}

std::vector<FanOutStep> found_in(const std::vector<Step>& steps,
                                 const PlaceOf& place_of = all_but(0)) {
  return fan_outs({.chunk_count = 4, .steps = steps}, place_of);
}

struct Count {
  std::ptrdiff_t copies = 0;  // that are made
  std::ptrdiff_t shared = 0;  // steps that send what was copied before
  bool operator==(const Count&) const = default;
};

Count count(const Algorithm& algorithm, const Place& at, FanOut kind) {
  const std::vector<FanOutStep> found = fan_outs(schedule_of(algorithm, at), all_but(at.rank));
  const auto all = std::ranges::count(found, kind, &FanOutStep::fan_out);
  const auto first = std::ranges::count_if(
      found, [&](const FanOutStep& step) { return step.fan_out == kind && step.is_first; });
  return {first, all - first};
}

Step send(const Chunk& chunk, int to) { return {.src = chunk, .send_to = to}; }

TEST(FanOut, a_root_copies_once) {
  const Algorithm& direct = *find_algorithm(Collective::kBroadcast, "direct");
  for (const int ranks : {3, 4, 8, 17}) {
    const Place at{.rank = 1, .ranks = ranks, .root = 1};
    EXPECT_EQ(count(direct, at, FanOut::kOneWay), (Count{1, ranks - 2}));
  }
  for (const int ranks : {2, 18}) {  // one reader, and too many
    const Place at{.rank = 1, .ranks = ranks, .root = 1};
    EXPECT_EQ(count(direct, at, FanOut::kOneWay), Count{}) << ranks;
  }
}

TEST(FanOut, ranks_that_exchange_copy_once_if_they_are_enough) {
  const Algorithm& direct = *find_algorithm(Collective::kAllGather, "direct");
  for (int ranks = 2; ranks <= 9; ++ranks) {
    const Place at{.rank = ranks / 2, .ranks = ranks};
    const Count expected = ranks > 4 ? Count{1, ranks - 2} : Count{};
    EXPECT_EQ(count(direct, at, FanOut::kExchanged), expected) << ranks;
    EXPECT_EQ(count(direct, at, FanOut::kOneWay), Count{}) << ranks;
  }
}

TEST(FanOut, is_of_one_chunk_to_others_that_stays_as_it_is) {
  EXPECT_EQ(found_in({send(input(0), 1), send(input(0), 2)})[1].fan_out, FanOut::kOneWay);
  const Step sends_and_keeps{.src = input(0), .dst = output(0), .send_to = 2};
  EXPECT_EQ(found_in({send(input(0), 1), sends_and_keeps})[1].fan_out, FanOut::kOneWay);
  const auto is_none = [](const std::vector<Step>& steps) {
    return std::ranges::all_of(found_in(steps), [](const FanOutStep& step) {
      return step.fan_out == FanOut::kNone && !step.is_first;
    });
  };
  EXPECT_TRUE(is_none({send(input(0), 1), send(input(1), 2)}));
  EXPECT_TRUE(is_none({send(input(0), 1), send(input(0), 0)}));
  EXPECT_TRUE(is_none({send(scratch(0), 1), send(scratch(0), 2)}));
  EXPECT_TRUE(is_none({send(input(0), 1), send(output(0), 3), send(input(0), 2)}));
  Step passes_on = send(input(0), 1);
  passes_on.recv_from = 3;
  EXPECT_TRUE(is_none({passes_on, send(input(0), 2)}));
  EXPECT_TRUE(is_none({send(input(0), 1), {.src = input(0), .dst = scratch(0), .send_to = 2}}));
}

// Receiving in between changes nothing of what is sent.
TEST(FanOut, goes_on_behind_steps_that_send_nothing) {
  const auto found = found_in({send(input(0), 1),
                               {.recv_from = 3, .dst = output(1)},
                               {.src = input(0), .dst = output(0)},
                               send(input(0), 2)});
  EXPECT_TRUE(found[0].is_first && found[0].fan_out == FanOut::kOneWay);
  EXPECT_TRUE(!found[3].is_first && found[3].fan_out == FanOut::kOneWay);
  EXPECT_EQ(found[1].fan_out, FanOut::kNone);
}

// So the first who can read it is the first for whom it is copied.
TEST(FanOut, is_of_those_who_can_read_it) {
  const std::vector<Step> steps{send(input(0), 1), send(input(0), 2), send(input(0), 3)};
  const auto found = found_in(steps, all_but(1));
  EXPECT_EQ(found[0].fan_out, FanOut::kNone);
  EXPECT_TRUE(found[1].is_first && found[2].fan_out == FanOut::kOneWay && !found[2].is_first);
  EXPECT_EQ(found_in({send(input(0), 1), send(input(0), 2)}, all_but(1))[1].fan_out, FanOut::kNone);
}

// As where some peers are threads of our process, and others are not.
TEST(FanOut, is_of_the_place_where_most_can_read_it) {
  const std::vector<Step> steps{send(input(0), 1), send(input(0), 2), send(input(0), 3),
                                send(input(0), 4), send(input(0), 5)};
  const auto found = found_in(steps, [](int peer) { return std::uintptr_t{peer % 3 == 1} + 1; });
  const auto is_one = [](const FanOutStep& step) { return step.fan_out == FanOut::kOneWay; };
  EXPECT_TRUE(is_one(found[1]) && is_one(found[2]) && is_one(found[4]));
  EXPECT_FALSE(is_one(found[0]) || is_one(found[3]));
  EXPECT_TRUE(found[1].is_first && !found[2].is_first && !found[4].is_first);
}

}  // namespace
}  // namespace catenary
