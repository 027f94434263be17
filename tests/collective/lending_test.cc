#include "src/collective/lending.h"

#include <gtest/gtest.h>

namespace catenary {
namespace {

Lending first_lending(Collective collective, std::string_view name, const Place& at) {
  const Algorithm& algorithm = *find_algorithm(collective, name);
  return lendings(algorithm, at, schedule_of(algorithm, at)).front();
}

TEST(Lending, of_input_in_place_is_found_where_it_is_safe) {
  const Place at{.rank = 1, .ranks = 4};
  const Lending reduced = first_lending(Collective::kAllReduce, "direct", at);
  EXPECT_EQ(reduced.chunk, input(2));
  EXPECT_TRUE(reduced.in_place);
  EXPECT_TRUE(first_lending(Collective::kAllGather, "direct", at).in_place);
  // All of the sum is written over all of the input, which may not have been read by then.
  const Lending shot = first_lending(Collective::kAllReduce, "one_shot", at);
  EXPECT_EQ(shot.chunk, input(0));
  EXPECT_FALSE(shot.in_place);
  // Each would wait for the other to take what it gives.
  EXPECT_FALSE(first_lending(Collective::kAllToAll, "direct", at).in_place);
}

TEST(Lending, of_what_is_kept_and_handed_on_is_of_input) {
  const Lending gathered = first_lending(Collective::kAllGather, "ring", {.rank = 1, .ranks = 4});
  EXPECT_EQ(gathered.chunk, input(0));
  EXPECT_TRUE(gathered.in_place);
}

TEST(Lending, of_what_a_root_sends_is_of_input_even_in_place_and_where_it_keeps_its_own_copy) {
  for (const std::string_view name : {"chain", "tree", "knomial4", "double_tree", "direct"}) {
    const Algorithm& algorithm = *find_algorithm(Collective::kBroadcast, name);
    const Place root{.rank = 2, .ranks = 8, .root = 2};
    const Schedule schedule = schedule_of(algorithm, root);
    const std::vector<Lending> found = lendings(algorithm, root, schedule);
    int kept = 0;
    for (std::size_t i = 0; i < found.size(); ++i) {
      const Step& step = schedule.steps[i];
      EXPECT_NE(step.send_to, kNobody) << name << " has a step for the copy alone";
      if (step.dst) ++kept;
      EXPECT_EQ(found[i].chunk, step.src) << name;
      EXPECT_TRUE(found[i].in_place) << name;
    }
    EXPECT_EQ(kept, schedule.chunk_count) << name;
  }
}

// Of two ranks on a ring, whoever takes a part sends its sum back.
TEST(Lending, asks_for_results_that_come_back) {
  const Algorithm& ring = *find_algorithm(Collective::kAllReduce, "ring");
  for (int ranks = 2; ranks <= 4; ++ranks) {
    for (int rank = 0; rank < ranks; ++rank) {
      const Place at{.rank = rank, .ranks = ranks};
      const std::vector<Lending> found = lendings(ring, at, schedule_of(ring, at));
      EXPECT_EQ(found.front().returned, ranks == 2 ? output(1 - rank) : Chunk{});
      for (std::size_t i = 1; i < found.size(); ++i) EXPECT_FALSE(found[i].returned);
    }
  }
  // What is left of a fold of many is not put anywhere.
  for (const std::string_view name : {"tree", "knomial4", "double_tree", "direct", "ring"}) {
    const Algorithm& algorithm = *find_algorithm(Collective::kAllReduce, name);
    for (int ranks = 3; ranks <= 9; ++ranks) {
      for (int rank = 0; rank < ranks; ++rank) {
        const Place at{.rank = rank, .ranks = ranks};
        for (const Lending& lending : lendings(algorithm, at, schedule_of(algorithm, at))) {
          EXPECT_FALSE(lending.returned) << name << " of " << ranks;
        }
      }
    }
  }
  // Both keep all that they send.
  EXPECT_FALSE(first_lending(Collective::kAllReduce, "one_shot", {.rank = 0, .ranks = 2}).returned);
}

// Only two ranks do nothing else than that.
TEST(Lending, is_in_exchange_where_two_ranks_swap_what_they_keep) {
  for (const std::string_view name : {"direct", "ring"}) {
    for (int ranks = 2; ranks <= 4; ++ranks) {
      for (int rank = 0; rank < ranks; ++rank) {
        const Place at{.rank = rank, .ranks = ranks};
        const Lending first = first_lending(Collective::kAllGather, name, at);
        EXPECT_EQ(first.exchanged, ranks == 2 ? output(1 - rank) : Chunk{}) << name;
      }
    }
  }
  for (const Algorithm& algorithm : algorithms()) {
    const Place at{.rank = 1, .ranks = 2, .root = 1};
    if (twin_of(algorithm.collective) == Collective::kAllGather || !algorithm.runs_on(at)) continue;
    for (const Lending& lending : lendings(algorithm, at, schedule_of(algorithm, at))) {
      EXPECT_FALSE(lending.exchanged) << algorithm.name;
    }
  }
}

TEST(Lending, of_what_is_neither_input_nor_output_is_none) {
  const Algorithm& ring = *find_algorithm(Collective::kAllReduce, "ring");
  const Place at{.rank = 0, .ranks = 4};
  const Schedule schedule = schedule_of(ring, at);
  const std::vector<Lending> found = lendings(ring, at, schedule);
  ASSERT_EQ(found.size(), schedule.steps.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    const Step& step = schedule.steps[i];
    if (step.recv_from != kNobody && step.dst.buffer != Buffer::kOutput) {
      EXPECT_FALSE(found[i].chunk);
    }
  }
}

}  // namespace
}  // namespace catenary
