#include "src/proof/survey.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>
#include <utility>

#include "src/base/error.h"

namespace catenary::proof {
namespace {

Proof prove(const Algorithm& algorithm, const Scope& scope,
            const std::function<void(const ProofCase&)>& progress) {
  Checker checker;
  return prove(checker, algorithm, scope, progress);
}

void ignore(const ProofCase& /*which*/) {}

TEST(Survey, proves_every_algorithm_for_a_few_ranks) {
  for (const Algorithm& algorithm : algorithms()) {
    const Proof proof = prove(algorithm, {.from_ranks = 1, .to_ranks = 12}, ignore);
    EXPECT_EQ(proof.fault, "") << name_of(algorithm.collective) << " " << algorithm.name;
    EXPECT_GE(proof.cases, 1u);
    EXPECT_EQ(proof.every_ranks, 12);
  }
}

TEST(Survey, takes_every_root_and_every_box) {
  const Algorithm& chain = *find_algorithm(Collective::kBroadcast, "chain");
  // Ranks 6, 6 roots, boxes of 1, 2, 3 and 6.
  EXPECT_EQ(prove(chain, {.from_ranks = 6, .to_ranks = 6}, ignore).cases, 6u * 4u);
  std::set<int> roots;
  prove(chain, {.from_ranks = 6, .to_ranks = 6},
        [&](const ProofCase& which) { roots.insert(which.root); });
  EXPECT_EQ(roots.size(), 6u);
}

TEST(Survey, proves_pairs_that_need_scratch_inside) {
  const std::pair<Collective, const char*> pairs[] = {
      {Collective::kReduceScatter, "hier_pat_pat"},
      {Collective::kReduceScatter, "hier_recursive_halving_ring"},
      {Collective::kAllReduce, "hier_pat_double_tree"},
      {Collective::kAllReduce, "hier_halving_doubling_recursive_doubling"},
      {Collective::kAllReduce, "hier_recursive_doubling_halving_doubling"},
      {Collective::kAllToAll, "hier_bruck_bruck"}};
  for (const auto& [collective, name] : pairs) {
    // With boxes of 4 and more.
    const Proof proof =
        prove(*find_algorithm(collective, name), {.from_ranks = 8, .to_ranks = 24}, ignore);
    EXPECT_EQ(proof.fault, "") << name;
    EXPECT_GT(proof.scratch_chunks, 0) << name;
  }
}

// What is known of one root holds of those that are it but for names, and of no others.
TEST(Survey, proves_a_root_that_differs) {
  Algorithm wrong = *find_algorithm(Collective::kBroadcast, "hier_direct_chain");
  wrong.steps = [](Place at) -> Steps {
    const Algorithm& right = *find_algorithm(Collective::kBroadcast, "hier_direct_chain");
    for (Step step : right.steps(at)) {
      if (at.root == 7 && at.rank == 2 && step.dst == output(3)) step.dst = output(2);
      co_yield step;
    }
  };
  const Proof proof = prove(wrong, {.from_ranks = 12, .to_ranks = 12}, ignore);
  EXPECT_EQ(proof.fault.find("12 ranks, root 7, box 4"), 0u) << proof.fault;
}

// What a pair that is not chosen does wrong in one case only is found, too.
struct Spoilt {
  const Algorithm* algorithm;
  std::function<bool(const Place&, Step&)> spoil;  // whether it has changed that step
  bool was_spoilt = false;
};
Spoilt* the_spoilt = nullptr;

Steps spoilt_steps(Place at) {
  for (Step step : the_spoilt->algorithm->steps(at)) {
    if (the_spoilt->spoil(at, step)) the_spoilt->was_spoilt = true;
    co_yield step;
  }
}

std::string fault_of(Collective collective, const char* name, int ranks,
                     std::function<bool(const Place&, Step&)> spoil) {
  Spoilt spoilt{find_algorithm(collective, name), std::move(spoil)};
  the_spoilt = &spoilt;
  Algorithm wrong = *spoilt.algorithm;
  EXPECT_FALSE(wrong.chosen_by_cost);
  wrong.steps = spoilt_steps;
  const std::string fault = prove(wrong, {.from_ranks = ranks, .to_ranks = ranks}, ignore).fault;
  EXPECT_TRUE(spoilt.was_spoilt) << "nothing was changed";
  return fault;
}

bool lies_elsewhere(Step& step) {
  if (step.dst.buffer != Buffer::kOutput || step.dst.index == 0) return false;
  --step.dst.index;
  return true;
}

TEST(Survey, proves_named_pairs_with_data_for_every_root) {
  for (const int root : {1, 3, 11}) {
    const std::string fault =
        fault_of(Collective::kBroadcast, "hier_ring_tree", 12, [root](const Place& at, Step& step) {
          return at.root == root && at.box == 2 && at.rank == 0 && lies_elsewhere(step);
        });
    EXPECT_EQ(fault.find(format("12 ranks, root %d, box 2", root)), 0u) << fault;
  }
}

TEST(Survey, proves_named_pairs_in_every_lane) {
  for (const int root : {0, 5}) {
    const std::string fault = fault_of(
        Collective::kBroadcast, "hier_bruck_double_tree", 9, [root](const Place& at, Step& step) {
          return at.lane == 1 && at.root == root && at.box == 3 && lies_elsewhere(step);
        });
    EXPECT_EQ(fault.find(format("9 ranks, root %d, box 3, lane 1", root)), 0u) << fault;
  }
}

TEST(Survey, proves_named_pairs_with_links_of_two_slots_and_of_as_many_as_run) {
  for (const int ranks : {8, 16, 24}) {
    for (const bool ahead : {false, true}) {
      const std::string fault = fault_of(
          Collective::kAllReduce, "hier_pat_ring", ranks, [=](const Place& at, Step& step) {
            return at.window == (ahead ? 15 : 1) && at.box == ranks / 2 && lies_elsewhere(step);
          });
      EXPECT_NE(fault, "") << ranks << (ahead ? " ahead" : "");
    }
  }
}

// A root whose steps differ from another's in anything is not that one renamed.
TEST(Survey, proves_a_root_that_differs_in_any_part_of_a_step) {
  const std::function<bool(Step&)> spoilers[] = {
      [](Step& step) { return step.recv_from != kNobody && (step.recv_from ^= 1, true); },
      [](Step& step) { return step.send_to != kNobody && (step.send_to ^= 1, true); },
      [](Step& step) {
        return step.src.buffer == Buffer::kInput && (step.src.buffer = Buffer::kOutput, true);
      },
      [](Step& step) {
        return step.dst.buffer == Buffer::kOutput && (step.dst.buffer = Buffer::kInput, true);
      },
      [](Step& step) { return step.src && (++step.src.index, true); },
      [](Step& step) { return step.dst && (++step.dst.index, true); },
  };
  for (const auto& spoil : spoilers) {
    const std::string fault =
        fault_of(Collective::kBroadcast, "hier_ring_tree", 12, [&](const Place& at, Step& step) {
          return at.root == 7 && at.box == 4 && at.rank == 7 && spoil(step);
        });
    EXPECT_EQ(fault.find("12 ranks, root 7, box 4"), 0u) << fault;
  }
}

// Renaming must not hide a rank that there is not.
TEST(Survey, proves_no_root_with_a_peer_beyond_all_ranks) {
  const std::string fault =
      fault_of(Collective::kBroadcast, "hier_ring_tree", 12, [](const Place& at, Step& step) {
        if (at.root < at.box || step.send_to == kNobody || at.box != 3) return false;
        step.send_to += at.ranks;
        return true;
      });
  EXPECT_NE(fault.find("root 3, box 3"), std::string::npos) << fault;
}

TEST(Survey, keeps_to_its_scope) {
  const Algorithm& chain = *find_algorithm(Collective::kBroadcast, "chain");
  const Scope scope{.from_ranks = 4, .to_ranks = 4, .root = 2, .box = 2, .slots = 5, .count = 3};
  const Proof proof = prove(chain, scope, ignore);
  EXPECT_EQ(proof.cases, 1u);
  EXPECT_EQ(proof.checks, 1u);
  EXPECT_EQ(proof.moves, 4u * 3u);  // a step of each rank's
}

TEST(Survey, ends_where_steps_do_not) {
  for (const Collective collective : {Collective::kAllReduce, Collective::kBroadcast}) {
    Algorithm endless = *find_algorithm(collective, "tree");
    endless.steps = [](Place at) -> Steps {
      for (;;) co_yield {.src = input(0), .send_to = at.after(1)};
    };
    const Scope scope{.from_ranks = 3, .to_ranks = 3};
    EXPECT_NE(prove(endless, scope, ignore).fault.find("no end of steps"), std::string::npos);
  }
}

TEST(Survey, takes_samples_of_many_ranks) {
  const Algorithm& chain = *find_algorithm(Collective::kReduce, "chain");
  std::set<int> seen;
  prove(chain, {.from_ranks = 65, .to_ranks = 4096},
        [&](const ProofCase& which) { seen.insert(which.ranks); });
  EXPECT_GE(seen.size(), 9u);
  EXPECT_EQ(*seen.begin(), 65);
  EXPECT_EQ(*seen.rbegin(), 4096);
}

// Ranks, and in which boxes.
std::set<std::pair<int, int>> large_cases_of(const Algorithm& pair) {
  std::set<std::pair<int, int>> seen;
  const auto note = [&](const ProofCase& which) { seen.insert({which.ranks, which.box}); };
  EXPECT_EQ(prove(pair, {.from_ranks = 1000, .to_ranks = 4096}, note).most_ranks, 4096);
  return seen;
}

TEST(Survey, takes_pairs_as_far_as_the_rank_counts) {
  const Algorithm& named = *find_algorithm(Collective::kReduceScatter, "hier_pat_ring");
  ASSERT_FALSE(named.chosen_by_cost);
  EXPECT_EQ(large_cases_of(named), (std::set<std::pair<int, int>>{{1000, 25}, {4096, 64}}));
  const Algorithm& chosen = *find_algorithm(Collective::kBroadcast, "hier_knomial4_direct");
  ASSERT_TRUE(chosen.chosen_by_cost);
  EXPECT_EQ(large_cases_of(chosen), (std::set<std::pair<int, int>>{{1000, 8}, {4096, 64}}));
}

// A ring of 5 in which the last rank does not add its part to its own chunk.
Steps wrong_ring(Place at) {
  for (Step step : ring_all_reduce(at)) {
    if (at.ranks == 5 && at.rank == 4 && step.src == input(4)) step.src = {};
    co_yield step;
  }
}

TEST(Survey, says_in_which_case_what_is_wrong) {
  Algorithm wrong = *find_algorithm(Collective::kAllReduce, "ring");
  wrong.steps = wrong_ring;
  const Proof proof = prove(wrong, {.from_ranks = 1, .to_ranks = 8}, ignore);
  EXPECT_EQ(proof.fault,
            "5 ranks, 5 elements, 2 slots: rank 4, pass 0, step 4, slice 0: writes a reduction of "
            "element 4 without rank 4's part to output[4], where the finished reduction of element "
            "4 belongs");
  EXPECT_EQ(proof.every_ranks, 4);
}

// Two ranks give each other what they have, by way of scratch that is as long as the wrong part.
Steps careless_all_gather(Place at) {
  const int peer = 1 - at.rank;
  co_yield {.src = input(0), .send_to = peer};
  co_yield {.src = input(0), .dst = output(at.rank)};
  co_yield {.recv_from = peer, .dst = scratch(at.rank)};
  co_yield {.src = scratch(at.rank), .dst = output(peer)};
}

// Right all of them, but for what their names promise besides.
TEST(Survey, proves_what_uneven_collectives_and_barriers_need) {
  Algorithm careless{.name = "careless",
                     .collective = Collective::kAllGather,
                     .steps = careless_all_gather,
                     .chunks = chunk_per_rank,
                     .scratch = chunk_per_rank};
  const Scope two{.from_ranks = 2, .to_ranks = 2};
  EXPECT_EQ(prove(careless, two, ignore).fault, "");
  careless.name = "ring";
  ASSERT_TRUE(keeps_parts(careless));
  EXPECT_NE(prove(careless, two, ignore).fault.find("expects"), std::string::npos);

  Algorithm ring = *find_algorithm(Collective::kAllReduce, "ring");
  EXPECT_EQ(prove(ring, two, ignore).fault, "");
  ring.name = "one_shot";
  ASSERT_TRUE(opens_links_only(ring));
  EXPECT_NE(prove(ring, two, ignore).fault.find("not the first on its link"), std::string::npos);
}

TEST(Survey, judges_loans_with_every_number_of_ranks) {
  const Algorithm& direct = *find_algorithm(Collective::kAllReduce, "direct");
  EXPECT_GE(prove(direct, {.from_ranks = 2, .to_ranks = 12}, ignore).loans, 11u);
}

TEST(Survey, takes_links_as_they_run_where_steps_depend_on_them) {
  const auto cuts_of = [](std::string_view name, int ranks) {
    return cuts_for(*find_algorithm(Collective::kAllReduce, name), ranks, ranks);
  };
  for (const int ranks : {512, 1000}) {
    EXPECT_EQ(cuts_of("ring", ranks).size(), 1u);
    EXPECT_EQ(cuts_of("halving_doubling", ranks).size(), 2u);
    EXPECT_EQ(cuts_of("halving_doubling", ranks).back().slots, 16u);
  }
  EXPECT_EQ(cuts_of("halving_doubling", kMostRanks).size(), 1u);
}

TEST(Survey, cuts_buffers_in_every_way_that_matters) {
  bool none = false;
  bool fewer = false;
  bool passes = false;
  bool slices = false;
  bool uneven = false;
  bool ahead = false;
  for (const Cut& cut : cuts_for(*find_algorithm(Collective::kAllReduce, "ring"), 6, 6)) {
    const ProofCase which{.ranks = 6, .count = cut.count, .slots = cut.slots};
    const Slicing slicing = slicing_of(which, 6);
    none = none || cut.count == 0;
    fewer = fewer || (cut.count > 0 && cut.count < 6);
    passes = passes || slicing.passes() > 1;
    slices = slices || slicing.slices(slicing.part(0, 0)) > 1;
    ahead = ahead || slicing.window() > 1;
    uneven = uneven || (cut.count > 6 && cut.count % 6 != 0);
  }
  EXPECT_TRUE(none && fewer && passes && slices && uneven && ahead);
}

}  // namespace
}  // namespace catenary::proof
