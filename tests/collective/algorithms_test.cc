// What the list of algorithms promises, and what makes each one what it is. That they are right is
// proved in tests/proof.
#include "src/collective/algorithms.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "src/base/error.h"
#include "src/collective/algorithms/tree.h"
#include "src/collective/fold.h"

namespace catenary {
namespace {

TEST(Algorithms, every_collective_has_some_and_names_are_unambiguous) {
  std::set<std::pair<Collective, std::string_view>> seen;
  std::set<Collective> collectives;
  for (const Algorithm& algorithm : algorithms()) {
    EXPECT_TRUE(seen.emplace(algorithm.collective, algorithm.name).second) << algorithm.name;
    for (int i = 0; i < kCollectiveCount; ++i) {
      const auto collective = static_cast<Collective>(i);
      if (find_algorithm(collective, algorithm.name) != nullptr) collectives.insert(collective);
    }
  }
  EXPECT_EQ(collectives.size(), static_cast<std::size_t>(kCollectiveCount));
}

std::vector<std::string_view> flat_names(Collective collective) {
  std::vector<std::string_view> names;
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.collective == collective && algorithm.inside.empty())
      names.push_back(algorithm.name);
  }
  return names;
}

// Each once.
std::vector<std::string_view> joined(std::vector<std::string_view> names,
                                     const std::vector<std::string_view>& more) {
  for (const std::string_view name : more) {
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  return names;
}

TEST(Algorithms, go_inside_of_boxes_with_any_across_them) {
  // What gathers inside of an all-reduce may be PAT as well; of a broadcast, whatever gathers: its
  // `direct` has the name of the broadcast's own.
  const std::pair<Collective, std::vector<std::string_view>> all[] = {
      {Collective::kAllReduce, joined(flat_names(Collective::kAllReduce), {"pat"})},
      {Collective::kBroadcast,
       joined(joined(flat_names(Collective::kAllGather), flat_names(Collective::kBroadcast)),
              {"one_shot"})},
      {Collective::kAllGather, flat_names(Collective::kAllGather)},
      {Collective::kReduceScatter, flat_names(Collective::kReduceScatter)},
      {Collective::kAllToAll, flat_names(Collective::kAllToAll)}};
  std::ptrdiff_t pairs = 0;
  for (const auto& [collective, insides] : all) {
    for (const std::string_view inside : insides) {
      for (const std::string_view across : flat_names(collective)) {
        const std::string name =
            format("hier_%s_%s", std::string(inside).c_str(), std::string(across).c_str());
        const Algorithm* found = find_algorithm(collective, name);
        ASSERT_NE(found, nullptr) << name;
        EXPECT_EQ(found->inside, inside);
        EXPECT_EQ(found->across, across);
        ++pairs;
      }
    }
  }
  EXPECT_EQ(pairs, std::ranges::count_if(algorithms(), [](const Algorithm& algorithm) {
              return !algorithm.inside.empty();
            }));
}

TEST(Algorithms, of_a_barrier_send_once_on_each_link) {
  int found = 0;
  for (const Algorithm& algorithm : algorithms()) {
    if (!performs(algorithm, Collective::kBarrier)) continue;
    ++found;
    for (int ranks = 2; ranks <= 70; ++ranks) {
      for (int rank = 0; rank < ranks; ++rank) {
        std::set<int> peers;
        for (const Step& step : steps_of(algorithm, {.rank = rank, .ranks = ranks})) {
          if (step.send_to == kNobody) continue;
          ASSERT_TRUE(peers.insert(step.send_to).second)
              << algorithm.name << ", rank " << rank << " of " << ranks;
        }
      }
    }
  }
  EXPECT_EQ(found, 2);
}

const Algorithm& algorithm_named(Collective collective, std::string_view name) {
  const Algorithm* found = find_algorithm(collective, name);
  if (found == nullptr) throw_error(ErrorCode::kInvalidArgument, "no such algorithm");
  return *found;
}

Schedule all_reduce(std::string_view name, int rank, int ranks) {
  return schedule_of(algorithm_named(Collective::kAllReduce, name), {.rank = rank, .ranks = ranks});
}

TEST(DirectAllReduce, folds_own_part_first_and_then_those_of_the_next_ranks) {
  const Schedule schedule = all_reduce("direct", 2, 4);
  const std::size_t first = 3;  // after the sends
  ASSERT_EQ(fold_steps(schedule, first), 3u);
  EXPECT_EQ(schedule.steps[first].src, input(2));
  EXPECT_EQ(schedule.steps[first].recv_from, 3);
  EXPECT_EQ(schedule.steps[first + 1].recv_from, 0);
  EXPECT_EQ(schedule.steps[first + 2].recv_from, 1);
  EXPECT_EQ(schedule.steps[first + 2].dst, output(2));
}

TEST(DirectAllReduce, ranks_begin_with_different_peers) {
  std::set<int> peers;
  for (int rank = 0; rank < 7; ++rank) peers.insert(all_reduce("direct", rank, 7).steps[0].send_to);
  EXPECT_EQ(peers.size(), 7u);
}

TEST(OneShotAllReduce, folds_messages_in_rank_order_at_every_rank) {
  for (int rank = 0; rank < 5; ++rank) {
    const Schedule schedule = all_reduce("one_shot", rank, 5);
    ASSERT_EQ(schedule.steps.size(), 10u);
    EXPECT_EQ(schedule.chunk_count, 1);
    EXPECT_EQ(fold_steps(schedule, 5), 5u);
    EXPECT_FALSE(schedule.steps[5].src);
    for (int peer = 0; peer < 5; ++peer) {
      EXPECT_EQ(schedule.steps[5 + static_cast<std::size_t>(peer)].recv_from, peer);
    }
  }
}

TEST(Ring, talks_to_neighbours_only) {
  for (const auto ring : {ring_all_reduce, ring_all_gather, ring_reduce_scatter}) {
    for (const Step& step : ring({.rank = 3, .ranks = 8})) {
      EXPECT_TRUE(step.recv_from == 2 || step.recv_from == kNobody);
      EXPECT_TRUE(step.send_to == 4 || step.send_to == kNobody);
    }
  }
}

TEST(DoubleTree, whoever_passes_on_in_one_lane_is_a_leaf_in_the_other) {
  for (int ranks = 2; ranks <= 65; ++ranks) {
    for (int rank = 0; rank < ranks; ++rank) {
      Place at{.rank = rank, .ranks = ranks, .root = ranks / 3};
      const bool passes_on = !double_tree_node(at).children.empty();
      at.lane = 1;
      const bool passes_on_too = !double_tree_node(at).children.empty();
      EXPECT_TRUE(rank == at.root || !passes_on || !passes_on_too) << rank << " of " << ranks;
    }
  }
}

// Distinct peers of a rank, and scratch that it needs, in chunks.
std::pair<int, int> peers_and_scratch(Steps steps) {
  std::set<int> peers;
  int chunks = 0;
  for (const Step& step : steps) {
    if (step.send_to != kNobody) peers.insert(step.send_to);
    for (const Chunk& chunk : {step.src, step.dst}) {
      if (chunk.buffer == Buffer::kScratch) chunks = std::max(chunks, chunk.index + 1);
    }
  }
  return {static_cast<int>(peers.size()), chunks};
}

TEST(LogarithmicAlgorithms, send_to_logarithmically_many_peers) {
  for (const auto steps :
       {recursive_doubling_all_reduce, recursive_doubling_all_gather, halving_doubling_all_reduce,
        recursive_halving_reduce_scatter, bruck_all_gather, bruck_all_to_all, pat_all_gather,
        pat_reduce_scatter}) {
    for (const int rank : {0, 1, 7, 998, 999}) {
      EXPECT_LE(peers_and_scratch(steps({.rank = rank, .ranks = 1000})).first, 10);
    }
  }
}

// What is declared is held to by the checker; that it is not much more than that is held here.
TEST(Scratch, that_is_declared_is_needed) {
  for (const Algorithm& algorithm : algorithms()) {
    Place at{.ranks = 8, .root = 3};
    // Of two ranks there is nothing left to keep for those that need scratch for more.
    if (!algorithm.inside.empty()) at = {.ranks = 16, .root = 3, .box = 4};
    if (is_point_to_point(algorithm.collective)) continue;
    int most = 0;
    for (at.rank = 0; at.rank < at.ranks; ++at.rank) {
      for (at.lane = 0; at.lane < algorithm.lanes; ++at.lane) {
        most = std::max(most, peers_and_scratch(algorithm.steps(at)).second);
      }
    }
    EXPECT_EQ(algorithm.scratch(at), most)
        << name_of(algorithm.collective) << " " << algorithm.name;
  }
}

TEST(Pat, scratch_is_logarithmic_and_as_much_more_as_is_sent_ahead) {
  for (const int window : {1, 2, 15}) {
    for (const int ranks : {3, 64, 1000}) {
      const int digits = static_cast<int>(std::bit_width(static_cast<unsigned>(ranks - 1)));
      const Place at{.rank = 1, .ranks = ranks, .window = window};
      EXPECT_LE(peers_and_scratch(pat_reduce_scatter(at)).second, window * (digits + 1));
    }
  }
}

TEST(Trees, are_as_deep_as_the_logarithm) {
  for (const int ranks : {2, 3, 17, 64, 65, 1000, 65536}) {
    for (const int rank : {1, ranks / 2, ranks - 1}) {
      const Place at{.rank = rank, .ranks = ranks};
      const int digits = static_cast<int>(std::bit_width(static_cast<unsigned>(ranks)));
      EXPECT_LE(knomial_node(at, 2).depth, digits);
      EXPECT_LE(knomial_node(at, 4).depth, (digits + 1) / 2);
      EXPECT_LE(double_tree_node(at).depth, digits);
    }
  }
}

TEST(Fold, a_step_that_touches_no_carry_stands_alone) {
  const Schedule schedule = all_reduce("ring", 0, 3);
  for (std::size_t i = 0; i < schedule.steps.size(); ++i) EXPECT_EQ(fold_steps(schedule, i), 1u);
}

}  // namespace
}  // namespace catenary
