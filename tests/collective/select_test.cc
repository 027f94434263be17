#include "src/collective/select.h"

#include <gtest/gtest.h>

#include <string>

#include "src/base/error.h"

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
        EXPECT_EQ(select(collective, bytes, nranks, kRoomy).algorithm->collective, collective);
      }
    }
  }
}

TEST(Select, a_forced_name_wins_where_the_collective_has_it) {
  EXPECT_EQ(select(Collective::kAllReduce, 8, 8, kRoomy, "ring").algorithm->name, "ring");
  EXPECT_EQ(select(Collective::kBroadcast, 8, 8, kRoomy, "chain").algorithm->name, "chain");
  EXPECT_EQ(select(Collective::kGather, 8, 8, kRoomy, "ring").algorithm->name, "direct");
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
