#include "src/proof/survey.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>

namespace catenary {
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
      {Collective::kAllToAll, "hier_bruck_bruck"}};
  for (const auto& [collective, name] : pairs) {
    // With boxes of 4 and more, messages of many slices, and many messages of one.
    const Proof proof =
        prove(*find_algorithm(collective, name), {.from_ranks = 8, .to_ranks = 24}, ignore);
    EXPECT_EQ(proof.fault, "") << name;
    EXPECT_GT(proof.scratch_chunks, 0) << name;
    const Proof ahead = prove(*find_algorithm(collective, name),
                              {.from_ranks = 16, .to_ranks = 16, .slots = 5, .count = 16}, ignore);
    EXPECT_EQ(ahead.fault, "") << name;
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

TEST(Survey, keeps_to_its_scope) {
  const Algorithm& chain = *find_algorithm(Collective::kBroadcast, "chain");
  const Scope scope{.from_ranks = 4, .to_ranks = 4, .root = 2, .box = 2, .slots = 5, .count = 3};
  const Proof proof = prove(chain, scope, ignore);
  EXPECT_EQ(proof.cases, 1u);
  EXPECT_EQ(proof.checks, 1u);
  EXPECT_EQ(proof.moves, 4u * 3u);
}

TEST(Survey, takes_samples_of_many_ranks) {
  const Algorithm& chain = *find_algorithm(Collective::kReduce, "chain");
  std::set<int> seen;
  prove(chain, {.from_ranks = 65, .to_ranks = 4096},
        [&](const ProofCase& which) { seen.insert(which.ranks); });
  EXPECT_GE(seen.size(), 10u);
  EXPECT_EQ(*seen.begin(), 65);
  EXPECT_EQ(*seen.rbegin(), 4096);
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

TEST(Survey, cuts_buffers_in_every_way_that_matters) {
  bool none = false;
  bool fewer = false;
  bool passes = false;
  bool slices = false;
  bool uneven = false;
  bool ahead = false;
  for (const Cut& cut : cuts_for(Collective::kAllReduce, 6, 6, 1)) {
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
}  // namespace catenary
