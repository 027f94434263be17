#include "src/collective/select.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "src/base/error.h"
#include "src/collective/box.h"

namespace catenary {
namespace {

constexpr MachineFacts kRoomy{.local_ranks = 8, .cores = 8};
constexpr MachineFacts kCrowded{.local_ranks = 8, .cores = 2};

TEST(Select, all_reduce_goes_from_one_shot_over_direct_to_the_ring_as_it_grows) {
  EXPECT_EQ(select(Collective::kAllReduce, 8, 8, kRoomy).algorithm->name, "one_shot");
  EXPECT_EQ(select(Collective::kAllReduce, 4096, 8, kRoomy).algorithm->name, "one_shot");
  EXPECT_EQ(select(Collective::kAllReduce, 4097, 8, kRoomy).algorithm->name, "direct");
  EXPECT_EQ(select(Collective::kAllReduce, std::size_t{1} << 30, 8, kRoomy).algorithm->name,
            "ring");
}

TEST(Select, more_ranks_than_cores_avoid_hops_while_messages_fit_the_caches) {
  for (const Collective collective : {Collective::kAllReduce, Collective::kAllGather,
                                      Collective::kReduceScatter, Collective::kBroadcast}) {
    EXPECT_EQ(select(collective, 128 * 1024, 8, kCrowded).algorithm->name, "direct");
    EXPECT_NE(select(collective, 128 * 1024 + 1, 8, kCrowded).algorithm->name, "direct");
    EXPECT_NE(select(collective, std::size_t{1} << 30, 8, kRoomy).algorithm->name, "direct");
  }
  EXPECT_EQ(select(Collective::kAllToAll, std::size_t{1} << 30, 8, kCrowded).algorithm->name,
            "direct");
}

TEST(Select, many_ranks_do_not_all_link_to_all) {
  EXPECT_EQ(select(Collective::kAllReduce, 8, 1000, kCrowded).algorithm->name, "ring");
  EXPECT_EQ(select(Collective::kBroadcast, 8, 1000, kCrowded).algorithm->name, "chain");
}

TEST(Select, finds_something_of_the_right_kind_for_everything) {
  for (int i = 0; i < kCollectiveCount; ++i) {
    const auto collective = static_cast<Collective>(i);
    for (const int nranks : {1, 2, 64, 65536}) {
      for (const std::size_t bytes : {std::size_t{0}, std::size_t{1} << 16, std::size_t{1} << 40}) {
        EXPECT_EQ(select(collective, bytes, nranks, kRoomy).algorithm->collective,
                  twin_of(collective));
      }
    }
  }
}

TEST(Select, a_forced_name_wins_where_the_collective_has_it) {
  EXPECT_EQ(select(Collective::kAllReduce, 8, 8, kRoomy, "ring").algorithm->name, "ring");
  EXPECT_EQ(select(Collective::kBroadcast, 8, 8, kRoomy, "chain").algorithm->name, "chain");
  EXPECT_EQ(select(Collective::kGather, 8, 8, kRoomy, "ring").algorithm->name, "direct");
}

TEST(Select, a_forced_name_does_not_win_where_it_cannot_run) {
  const auto algorithm = [](int nranks, int box) {
    MachineFacts machine = kRoomy;
    machine.box = box;
    return select(Collective::kAllReduce, 8, nranks, machine, "hier_direct_ring").algorithm->name;
  };
  EXPECT_EQ(algorithm(8, 4), "hier_direct_ring");
  EXPECT_EQ(algorithm(8, 8), "one_shot");
  EXPECT_EQ(algorithm(8, 1), "one_shot");
  EXPECT_EQ(algorithm(1, 1), "one_shot");
}

TEST(Select, an_algorithm_gets_the_lanes_it_is_made_for) {
  EXPECT_EQ(select(Collective::kAllReduce, 8, 8, kRoomy, "double_tree").lanes, 2);
  EXPECT_EQ(select(Collective::kAllReduce, 8, 8, kRoomy, "tree").lanes, 1);
}

TEST(Box, is_a_size_that_all_ranks_agree_on) {
  const auto box = [](std::vector<LocalRun> runs) { return box_of(runs); };
  EXPECT_EQ(box({{0, 2}, {0, 2}, {2, 2}, {2, 2}}), 2);
  EXPECT_EQ(box({{0, 3}, {0, 3}, {0, 3}}), 3);
  EXPECT_EQ(box({{0, 1}, {1, 1}}), 1);
  EXPECT_EQ(box({{0, 2}, {0, 2}, {2, 1}}), 1) << "unequal machines";
  EXPECT_EQ(box({{0, 0}, {1, 0}, {0, 0}, {1, 0}}), 1) << "every other rank";
  EXPECT_EQ(box({{0, 2}, {0, 2}, {2, 2}}), 1) << "does not divide the ranks";
  EXPECT_EQ(box({{0, 1}, {0, 2}, {1, 2}, {3, 1}}), 1) << "in other places";
  EXPECT_EQ(box({{0, 2}, {0, 4}}), 1) << "ranks say different things";
  EXPECT_EQ(box({}), 1);
}

TEST(Select, a_name_that_nobody_knows_is_an_error_that_lists_the_known) {
  try {
    select(Collective::kAllReduce, 8, 8, kRoomy, "oak");
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    const std::string message = error.what();
    EXPECT_EQ(message.find("there is no algorithm \"oak\"; the known ones are "), 0u) << message;
    for (const char* known : {"chain, ", "direct, ", "one_shot, ", "ring"}) {
      EXPECT_NE(message.find(known), std::string::npos) << message;
    }
  }
}

}  // namespace
}  // namespace catenary
