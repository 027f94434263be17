// Proves every algorithm for every rank count, root, cut and placement that is likely to differ.
#include "src/collective/algorithms.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <set>
#include <string>
#include <utility>

#include "src/base/error.h"
#include "src/collective/fold.h"
#include "src/collective/tree.h"
#include "tests/support/schedule_check.h"

namespace catenary {
namespace {

// Up to here every root and every cut; above, those most likely to differ.
constexpr int kThorough = 17;

std::vector<int> rank_counts() {
  std::vector<int> counts;
  for (int nranks = 1; nranks <= 33; ++nranks) counts.push_back(nranks);
  counts.push_back(64);
  return counts;
}

std::vector<int> roots_of(Collective collective, int nranks) {
  if (!has_root(collective)) return {0};
  if (nranks > kThorough) return {0, 1, nranks / 2, nranks - 1};
  std::vector<int> roots;
  for (int root = 0; root < nranks; ++root) roots.push_back(root);
  return roots;
}

// Itself, a neighbour, and the farthest.
std::vector<int> receivers_of(Collective collective, int nranks, int sender) {
  if (collective != Collective::kSend && collective != Collective::kRecv) return {0};
  return {sender, (sender + 1) % nranks, (sender + nranks / 2) % nranks};
}

std::string describe(const Algorithm& algorithm, const ScheduleCase& which) {
  return format(
      "%s %s, %d ranks, boxes of %d, root %d, receiver %d, lane %d, %zu elements, "
      "%u slots, %s",
      std::string(algorithm.name).c_str(), std::string(name_of(algorithm.collective)).c_str(),
      which.nranks, which.box, which.root, which.receiver, which.lane, which.count, which.slots,
      which.in_place ? "in place" : "apart");
}

// How the elements are cut: fewer than chunks; whole and partial passes of one slice; of several;
// and messages short enough to send some of them ahead.
std::vector<std::pair<std::uint32_t, std::size_t>> cuts_for(int nranks, std::size_t chunks,
                                                            bool sends_ahead) {
  std::vector<std::pair<std::uint32_t, std::size_t>> cuts;
  if (nranks > kThorough) {
    cuts = {{2, chunks + 1}, {4, 4 * chunks - 1}};
  } else {
    cuts = {{2, 1}, {2, 2 * chunks + 1}, {3, 3 * chunks + 2}, {4, 7 * chunks - 1}};
    if (sends_ahead) cuts.emplace_back(4, chunks);
  }
  if (sends_ahead) cuts.emplace_back(9, chunks);
  return cuts;
}

void expect_right(const Algorithm& algorithm, ScheduleCase which) {
  const int chunks = algorithm.chunks({.ranks = which.nranks, .box = which.box});
  const bool parts = holds_part_per_rank(which.collective);
  for (const auto& [slots, count] : cuts_for(
           which.nranks, parts ? 1 : static_cast<std::size_t>(chunks), algorithm.sends_ahead)) {
    which.slots = slots;
    which.count = count;
    const auto schedules = schedules_of(algorithm, which);
    for (const bool in_place : {false, true}) {
      if (in_place && !has_in_place_layout(which.collective)) continue;
      which.in_place = in_place;
      ASSERT_EQ(check_schedules(which, schedules), "") << describe(algorithm, which);
    }
  }
}

// The sizes of a box for which the algorithm runs; if it does not care, one.
std::vector<int> boxes_of(const Algorithm& algorithm, int nranks) {
  if (nranks == 1 || algorithm.runs_on({.ranks = nranks})) return {1};
  std::vector<int> boxes;
  for (int box = 1; box <= nranks; ++box) {
    if (nranks % box == 0 && algorithm.runs_on({.ranks = nranks, .box = box})) boxes.push_back(box);
  }
  return boxes;
}

void expect_right_in_every_lane(const Algorithm& algorithm, ScheduleCase which) {
  for (const int box : boxes_of(algorithm, which.nranks)) {
    which.box = box;
    for (which.lane = 0; which.lane < algorithm.lanes; ++which.lane) expect_right(algorithm, which);
  }
}

class EveryAlgorithm : public testing::TestWithParam<Algorithm> {};

TEST_P(EveryAlgorithm, is_right_for_every_rank_count_and_root) {
  const Algorithm& algorithm = GetParam();
  for (const int nranks : rank_counts()) {
    for (const int root : roots_of(algorithm.collective, nranks)) {
      ScheduleCase which{.collective = algorithm.collective, .nranks = nranks, .root = root};
      for (const int receiver : receivers_of(algorithm.collective, nranks, root)) {
        which.receiver = receiver;
        expect_right_in_every_lane(algorithm, which);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_P(EveryAlgorithm, does_nothing_for_no_elements) {
  ScheduleCase which{.collective = GetParam().collective, .nranks = 6, .root = 2, .receiver = 4};
  which.count = 0;
  which.box = boxes_of(GetParam(), which.nranks).front();
  EXPECT_EQ(check_schedules(which, schedules_of(GetParam(), which)), "");
}

INSTANTIATE_TEST_SUITE_P(Table, EveryAlgorithm,
                         testing::ValuesIn(algorithms().begin(), algorithms().end()),
                         [](const auto& which) {
                           return std::string(name_of(which.param.collective)) + "_" +
                                  std::string(which.param.name);
                         });

TEST(Algorithms, every_collective_has_some_and_names_are_unambiguous) {
  std::set<std::pair<Collective, std::string_view>> seen;
  std::set<Collective> collectives;
  for (const Algorithm& algorithm : algorithms()) {
    EXPECT_TRUE(seen.emplace(algorithm.collective, algorithm.name).second) << algorithm.name;
    collectives.insert(algorithm.collective);
  }
  EXPECT_EQ(collectives.size(), static_cast<std::size_t>(kCollectiveCount));
}

const Algorithm& algorithm_named(Collective collective, std::string_view name) {
  const Algorithm* found = find_algorithm(collective, name);
  if (found == nullptr) throw_error(ErrorCode::kInvalidArgument, "no such algorithm");
  return *found;
}

Schedule all_reduce(std::string_view name, int rank, int ranks) {
  return schedule_of(algorithm_named(Collective::kAllReduce, name), {.rank = rank, .ranks = ranks});
}

TEST(Links, one_slot_deadlocks_a_ring_and_two_do_not) {
  const Algorithm& ring = algorithm_named(Collective::kAllReduce, "ring");
  ScheduleCase which{.collective = Collective::kAllReduce, .nranks = 4, .count = 4};
  which.link_slots = 1;
  EXPECT_EQ(check_schedules(which, schedules_of(ring, which)).substr(0, 8), "deadlock");
  which.link_slots = 2;
  EXPECT_EQ(check_schedules(which, schedules_of(ring, which)), "");
}

TEST(Links, a_message_that_spans_all_slots_deadlocks_a_ring) {
  const Algorithm& ring = algorithm_named(Collective::kAllReduce, "ring");
  ScheduleCase which{.collective = Collective::kAllReduce, .nranks = 4, .count = 4 * 5};
  for (std::uint32_t slots = 2; slots <= 5; ++slots) {
    which.link_slots = slots;
    which.slots = slots + 1;
    EXPECT_EQ(check_schedules(which, schedules_of(ring, which)).substr(0, 8), "deadlock") << slots;
    which.slots = slots;
    EXPECT_EQ(check_schedules(which, schedules_of(ring, which)), "") << slots;
  }
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
