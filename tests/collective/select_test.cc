#include "src/collective/select.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "src/base/error.h"
#include "src/collective/box.h"

namespace catenary {
namespace {

constexpr Cut kLinks{.slice_bytes = 65536, .slots = 16};
constexpr std::size_t kHuge = std::size_t{1} << 30;

MachineFacts roomy(int ranks) { return {.local_ranks = ranks, .cores = ranks, .box = ranks}; }
MachineFacts crowded(int ranks) { return {.local_ranks = ranks, .cores = 2, .box = ranks}; }

Setting setting(int ranks, const MachineFacts& machine) {
  return {.nranks = ranks, .machine = machine, .parameters = default_parameters(), .cut = kLinks};
}

Selector selector(int ranks, const MachineFacts& machine, std::string_view forced = "",
                  std::string_view nccl_algo = "") {
  return Selector(setting(ranks, machine), AlgorithmRules(forced, nccl_algo, ""));
}

std::string_view chosen(Selector selector, Collective collective, std::size_t bytes) {
  return selector.select(collective, bytes).algorithm->name;
}

TEST(Select, few_hops_win_for_short_messages_and_even_load_for_long_ones) {
  const Selector rooms = selector(8, roomy(8));
  const std::string_view small = chosen(rooms, Collective::kAllReduce, 8);
  EXPECT_NE(small, "ring");
  EXPECT_NE(small, "direct");
  EXPECT_NE(chosen(rooms, Collective::kAllReduce, kHuge), "one_shot");
  EXPECT_NE(chosen(rooms, Collective::kBroadcast, 8), "chain");
  EXPECT_NE(chosen(rooms, Collective::kBroadcast, kHuge), "direct");
}

TEST(Select, ranks_that_share_cores_avoid_hops) {
  const Selector crowd = selector(8, crowded(8));
  for (const Collective collective :
       {Collective::kAllReduce, Collective::kAllGather, Collective::kReduceScatter}) {
    EXPECT_NE(chosen(crowd, collective, 4096), "ring");
  }
}

TEST(Select, many_ranks_do_not_all_link_to_all) {
  for (const Collective collective :
       {Collective::kAllReduce, Collective::kAllGather, Collective::kReduceScatter,
        Collective::kBroadcast, Collective::kReduce}) {
    Selector many = selector(1000, crowded(1000));
    const Selection& selection = many.select(collective, 8);
    EXPECT_LE(shape_of(*selection.algorithm, {.ranks = 1000, .box = 1000}).peers, 64)
        << name_of(collective);
  }
}

TEST(Select, finds_something_of_the_right_kind_for_everything) {
  for (int i = 0; i < kCollectiveCount; ++i) {
    const auto collective = static_cast<Collective>(i);
    for (const int nranks : {1, 2, 3, 64, 65536}) {
      Selector any = selector(nranks, roomy(nranks));
      for (const std::size_t bytes :
           {std::size_t{0}, std::size_t{1} << 16, std::size_t{1} << 40, std::size_t{1} << 62}) {
        const Selection& selection = any.select(collective, bytes);
        ASSERT_EQ(selection.algorithm->collective, twin_of(collective));
        ASSERT_GT(selection.time_ns, 0);
        ASSERT_LE(selection.cut.slice_bytes, kLinks.slice_bytes);
        ASSERT_EQ(selection.cut.slots, kLinks.slots);
      }
    }
  }
}

TEST(Select, the_choice_is_the_cheapest_candidate_and_stays) {
  Selector any = selector(8, crowded(8));
  const auto candidates = any.candidates(Collective::kAllReduce, 1 << 20);
  ASSERT_GE(candidates.size(), 3u);
  for (const Selection& candidate : candidates) {
    EXPECT_GE(candidate.time_ns, candidates.front().time_ns / 1.4);  // or direct
  }
  const Selection& first = any.select(Collective::kAllReduce, 1 << 20);
  EXPECT_EQ(first.algorithm, candidates.front().algorithm);
  EXPECT_EQ(&any.select(Collective::kAllReduce, 1 << 20), &first);
  EXPECT_EQ(&any.select(Collective::kAllReduce, (1 << 20) + 4), &first);
}

const Selection& named(const std::vector<Selection>& candidates, std::string_view name) {
  return *std::ranges::find_if(candidates,
                               [&](const Selection& each) { return each.algorithm->name == name; });
}

// How often direct is chosen though another is faster, and always if that is within `tie`.
int direct_behind(Collective collective, int ranks, const MachineFacts& machine, double tie) {
  int chosen_behind = 0;
  for (std::size_t bytes = 1 << 18; bytes <= kHuge; bytes *= 2) {
    const auto candidates = selector(ranks, machine).candidates(collective, bytes);
    const Selection& direct = named(candidates, "direct");
    const auto fastest = std::ranges::min_element(candidates, {}, &Selection::time_ns);
    const auto shot = std::ranges::find_if(
        candidates, [](const Selection& each) { return each.algorithm->name == "one_shot"; });
    if (shot != candidates.end() && shot->time_ns <= 1.01 * fastest->time_ns) continue;
    const bool is_first = &direct == &candidates.front();
    EXPECT_EQ(is_first, direct.time_ns <= tie * fastest->time_ns)
        << name_of(collective) << " of " << bytes << " bytes, " << ranks << " ranks";
    chosen_behind += is_first && &direct != &*fastest;
  }
  return chosen_behind;
}

// All that it sends can be lent.
TEST(Select, of_those_that_are_alike_the_direct_one_is_chosen) {
  int behind = 0;
  for (int ranks = 3; ranks <= 8; ++ranks) {
    for (const Collective collective :
         {Collective::kAllReduce, Collective::kReduceScatter, Collective::kBroadcast}) {
      behind += direct_behind(collective, ranks, roomy(ranks), 1.05);
    }
  }
  EXPECT_GT(behind, 0);
}

// Two ranks lend all by the ring as well; and where some do not share memory, nothing is lent them.
TEST(Select, where_direct_lends_no_more_the_fastest_is_chosen) {
  const MachineFacts boxes{.local_ranks = 4, .cores = 2, .box = 4, .far = Wire::kNetwork};
  for (std::size_t bytes = 1 << 21; bytes <= kHuge; bytes *= 2) {
    for (const Collective collective : {Collective::kAllReduce, Collective::kReduceScatter}) {
      for (const auto& any : {selector(2, roomy(2)), selector(12, boxes)}) {
        const auto candidates = any.candidates(collective, bytes);
        EXPECT_EQ(candidates.front().time_ns,
                  std::ranges::min_element(candidates, {}, &Selection::time_ns)->time_ns);
      }
    }
  }
}

TEST(Select, two_hosts_exchange_long_sums_at_once_where_that_is_alike) {
  int behind = 0;
  for (const int box : {2, 4, 8}) {
    const MachineFacts hosts{.local_ranks = 2 * box, .cores = 2, .box = box, .far = Wire::kNetwork};
    for (std::size_t bytes = 1 << 18; bytes <= kHuge; bytes *= 2) {
      const auto candidates = selector(2 * box, hosts).candidates(Collective::kAllReduce, bytes);
      const Selection& at_once = named(candidates, "hier_direct_recursive_doubling");
      const auto fastest = std::ranges::min_element(candidates, {}, &Selection::time_ns);
      const bool is_alike = bytes >= 1 << 19 && at_once.time_ns <= 1.1 * fastest->time_ns;
      const bool is_first = &at_once == &candidates.front();
      EXPECT_TRUE(is_first == is_alike || &at_once == &*fastest)
          << bytes << " bytes, boxes of " << box;
      behind += is_first && &at_once != &*fastest ? 1 : 0;
    }
  }
  EXPECT_GT(behind, 0);
}

// Four to a link, and four at least where there are as many slices.
TEST(Select, what_goes_across_hosts_goes_in_short_passes) {
  const MachineFacts hosts{.local_ranks = 4, .cores = 2, .box = 2, .far = Wire::kNetwork};
  for (std::size_t bytes = 1 << 12; bytes <= kHuge; bytes *= 2) {
    for (const Selection& each : selector(4, hosts).candidates(Collective::kAllReduce, bytes)) {
      if (each.algorithm->across.empty()) {
        EXPECT_EQ(each.cut.slices_per_pass(), 8u) << each.algorithm->name;
        continue;
      }
      const Place at{.ranks = 4, .box = 2};
      const std::size_t slices = chunk_bytes(*each.algorithm, bytes, at) / each.cut.slice_bytes;
      EXPECT_EQ(each.cut.slices_per_pass(), std::clamp<std::size_t>(slices / 4, 1, 4))
          << each.algorithm->name << " of " << bytes << " bytes";
    }
  }
}

TEST(Select, in_a_crowd_much_is_alike) {
  int behind = 0;
  for (int ranks = 3; ranks <= 8; ++ranks) {
    for (const Collective collective :
         {Collective::kAllReduce, Collective::kReduce, Collective::kBroadcast}) {
      behind += direct_behind(collective, ranks, crowded(ranks), 1.4);
    }
  }
  EXPECT_GT(behind, 0);
}

// As many bytes cross the links in both, but a root that takes all of them works alone.
TEST(Select, a_root_that_does_all_the_work_is_no_good_where_ranks_share_cores) {
  CostParameters only_bytes = default_parameters();
  only_bytes.operation_ns = only_bytes.step_ns = only_bytes.switch_ns = only_bytes.turn_ns = 0;
  only_bytes.crowded_byte_ns = 0.03;
  only_bytes.wires[static_cast<std::size_t>(Wire::kProcesses)] = {};
  const auto time = [&](std::string_view name, const MachineFacts& machine) {
    const Algorithm& algorithm = *find_algorithm(Collective::kReduce, name);
    Setting eight = setting(8, machine);
    eight.parameters = only_bytes;
    return time_ns(algorithm, 1 << 18, eight);
  };
  EXPECT_LT(time("tree", crowded(8)), 0.85 * time("direct", crowded(8)));
  EXPECT_LT(time("chain", crowded(8)), 0.85 * time("direct", crowded(8)));
}

// There each puts its sums into the other one's memory, which the model does not know.
TEST(Select, two_ranks_that_share_memory_sum_what_is_long_on_a_ring) {
  for (std::size_t bytes = 1 << 16; bytes <= kHuge; bytes *= 2) {
    EXPECT_EQ(chosen(selector(2, roomy(2)), Collective::kAllReduce, bytes), "ring") << bytes;
  }
  const auto candidates = selector(2, roomy(2)).candidates(Collective::kAllReduce, 1 << 20);
  EXPECT_LT(candidates.front().time_ns,
            1.1 * std::ranges::min_element(candidates, {}, &Selection::time_ns)->time_ns);
}

TEST(Select, a_class_of_sizes_is_around_a_power_of_two) {
  EXPECT_EQ(Selector::size_class(0), 0u);
  EXPECT_EQ(Selector::size_class(1024), Selector::size_class(1500));
  EXPECT_EQ(Selector::size_class(1024), Selector::size_class(800));
  EXPECT_NE(Selector::size_class(1024), Selector::size_class(1600));
  EXPECT_LT(Selector::size_class(SIZE_MAX / 2), Selector::kSizeClasses);
}

TEST(Select, fewer_cores_never_make_an_algorithm_faster) {
  for (const Algorithm& algorithm : algorithms()) {
    if (!algorithm.runs_on({.ranks = 4, .box = 4})) continue;
    for (const std::size_t bytes : {std::size_t{8}, std::size_t{32768}, std::size_t{1} << 20}) {
      double before = 0;
      for (const int cores : {4, 3, 2, 1}) {
        const MachineFacts machine = {.local_ranks = 4, .cores = cores, .box = 4};
        const double ns = time_ns(algorithm, bytes, setting(4, machine));
        EXPECT_GE(ns, before) << algorithm.name << ", " << bytes << " bytes, " << cores << " cores";
        before = ns;
      }
    }
  }
}

TEST(Select, more_bytes_never_take_less_time) {
  for (const MachineFacts& machine : {roomy(4), crowded(4)}) {
    for (const Algorithm& algorithm : algorithms()) {
      if (!algorithm.runs_on({.ranks = 4, .box = 4})) continue;
      double last = 0;
      for (std::size_t bytes = 8; bytes <= kHuge; bytes *= 2) {
        const double now = time_ns(algorithm, bytes, setting(4, machine));
        EXPECT_GE(now, last) << algorithm.name << " " << bytes;
        last = now;
      }
    }
  }
}

// It took 407 us to copy 4 MB on the machine that the defaults are of.
TEST(Select, who_is_alone_is_said_to_copy_as_fast_as_memory_is) {
  for (const Collective collective : {Collective::kAllReduce, Collective::kGather}) {
    const double ns = selector(1, roomy(1)).estimate_ns(collective, 4 << 20);
    EXPECT_GT(ns, 150e3);
    EXPECT_LT(ns, 600e3);
  }
}

TEST(Select, chunks_that_fit_into_no_slot_are_cut_into_packets) {
  MachineFacts machine{.far = Wire::kNetwork, .packet_bytes = 62464};
  const auto slice = [&](std::size_t chunk) {
    return selector(2, machine, "direct").select(Collective::kAllReduce, 2 * chunk).cut.slice_bytes;
  };
  EXPECT_EQ(slice(std::size_t{1} << 24), 62464u);
  EXPECT_EQ(selector(2, machine).message_cut(std::size_t{1} << 24).slice_bytes, 62464u);
  EXPECT_GE(slice(65536), 65536u / 8);
  EXPECT_EQ(65536 % slice(65536), 0u);  // as if there were no packets
  // The parts may be of any length.
  EXPECT_EQ(selector(2, machine).select(Collective::kAllToAllV, 0).cut.slice_bytes, 62464u);
  machine.packet_bytes = std::size_t{1} << 20;  // more than slots have
  EXPECT_EQ(slice(std::size_t{1} << 24), 65536u);
}

TEST(Select, a_forced_name_wins_where_the_collective_has_it) {
  EXPECT_EQ(chosen(selector(8, roomy(8), "ring"), Collective::kAllReduce, 8), "ring");
  EXPECT_EQ(chosen(selector(8, roomy(8), "chain"), Collective::kBroadcast, 8), "chain");
  EXPECT_EQ(chosen(selector(8, roomy(8), "chain"), Collective::kGather, 8), "direct");
  EXPECT_EQ(chosen(selector(8, roomy(8), "ring", "^ring"), Collective::kAllReduce, 8), "ring");
}

TEST(Select, a_forced_name_does_not_win_where_it_cannot_run) {
  const auto algorithm = [](int nranks, int box) {
    MachineFacts machine = roomy(8);
    machine.box = box;
    return chosen(selector(nranks, machine, "hier_direct_ring"), Collective::kAllReduce, 8);
  };
  EXPECT_EQ(algorithm(8, 4), "hier_direct_ring");
  EXPECT_NE(algorithm(8, 8), "hier_direct_ring");
  EXPECT_NE(algorithm(8, 1), "hier_direct_ring");
  EXPECT_NE(algorithm(1, 1), "hier_direct_ring");
}

TEST(Select, a_pair_that_cost_does_not_choose_has_to_be_named) {
  MachineFacts machine = roomy(4);
  machine.box = 4;
  const auto names = [&](std::string_view forced, std::string_view nccl_algo) {
    std::set<std::string_view> found;
    for (const Selection& each :
         selector(16, machine, forced, nccl_algo).candidates(Collective::kAllReduce, 8)) {
      EXPECT_TRUE(each.algorithm->chosen_by_cost || !forced.empty() ||
                  nccl_algo.starts_with("hier"))
          << each.algorithm->name;
      found.insert(each.algorithm->name);
    }
    return found;
  };
  EXPECT_TRUE(names("", "").contains("hier_ring_ring"));
  EXPECT_TRUE(names("", "^ring").contains("hier_ring_ring"));
  EXPECT_EQ(names("hier_pat_tree", ""), std::set<std::string_view>{"hier_pat_tree"});
  EXPECT_EQ(names("", "hier_pat_tree"), std::set<std::string_view>{"hier_pat_tree"});
}

TEST(Select, an_algorithm_gets_the_lanes_it_is_made_for) {
  const auto lanes = [](std::string_view forced) {
    return selector(8, roomy(8), forced).select(Collective::kAllReduce, 8).lanes;
  };
  EXPECT_EQ(lanes("double_tree"), 2);
  EXPECT_EQ(lanes("tree"), 1);
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
    AlgorithmRules("oak", "", "");
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    const std::string text = error.what();
    EXPECT_EQ(text.find("CATENARY_ALGO: there is no algorithm \"oak\"; the known ones are "), 0u)
        << text;
    EXPECT_NE(text.find("one_shot"), std::string::npos);
  }
}

// The names that a NCCL_ALGO leaves to a collective.
std::set<std::string_view> allowed(const char* nccl_algo, Collective collective) {
  const AlgorithmRules rules("", nccl_algo, "");
  std::set<std::string_view> names;
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.collective == collective &&
        rules.allows(collective, algorithm, {.ranks = 8, .box = 8}))
      names.insert(algorithm.name);
  }
  return names;
}

using Names = std::set<std::string_view>;

TEST(NcclAlgo, is_a_list_of_nccls_names_or_ours) {
  EXPECT_EQ(allowed("Ring", Collective::kAllReduce), Names{"ring"});
  EXPECT_EQ(allowed("RING", Collective::kBroadcast), Names{"chain"});
  EXPECT_EQ(allowed("ring, one_shot", Collective::kAllReduce), (Names{"one_shot", "ring"}));
  EXPECT_EQ(allowed("NVLS,NVLS_TREE,NVLSTree,ring", Collective::kAllReduce), Names{"ring"});
  EXPECT_EQ(allowed("CollnetDirect,CollnetChain", Collective::kAllReduce), Names{});
  EXPECT_EQ(allowed("", Collective::kAllReduce), allowed("^nvls", Collective::kAllReduce));
}

TEST(NcclAlgo, excludes_after_a_caret) {
  EXPECT_FALSE(allowed("^ring", Collective::kAllReduce).contains("ring"));
  EXPECT_TRUE(allowed("^ring", Collective::kAllReduce).contains("direct"));
  EXPECT_FALSE(allowed("^ring,direct", Collective::kAllReduce).contains("direct"));
}

TEST(NcclAlgo, is_for_each_collective_or_the_rest) {
  const char* text = "ring;allreduce:direct;Broadcast:^chain";
  EXPECT_EQ(allowed(text, Collective::kAllReduce), Names{"direct"});
  EXPECT_EQ(allowed(text, Collective::kAllGather), Names{"ring"});
  EXPECT_TRUE(allowed(text, Collective::kBroadcast).contains("direct"));
  EXPECT_FALSE(allowed(text, Collective::kBroadcast).contains("chain"));
  EXPECT_EQ(allowed("allreduce:ring", Collective::kBroadcast), allowed("", Collective::kBroadcast));
  // NCCL makes these of sends and receives, which no list binds.
  EXPECT_EQ(allowed("ring", Collective::kAllToAll), allowed("", Collective::kAllToAll));
}

TEST(NcclAlgo, that_makes_no_sense_is_refused) {
  for (const char* text : {"oak", "ring,", "ring,oak", "^", "ring;tree", "gather:ring",
                           "allreduce:", "allreduce:ring:tree", "allreduce:ring;tree"}) {
    const bool is_fine = std::string_view(text) == "ring,";  // NCCL's strtok skips nothing, too
    try {
      AlgorithmRules("", text, "");
      EXPECT_TRUE(is_fine) << text;
    } catch (const Error& error) {
      EXPECT_FALSE(is_fine) << text;
      EXPECT_EQ(error.code(), ErrorCode::kInvalidUsage) << text;
      EXPECT_EQ(std::string_view(error.what()).find("NCCL_ALGO"), 0u) << error.what();
    }
  }
}

std::string refusal(const char* nccl_algo, const char* nccl_proto) {
  try {
    AlgorithmRules("", nccl_algo, nccl_proto);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(NcclAlgo, a_name_that_nobody_knows_is_told_the_known) {
  const std::string algo = refusal("foo", "");
  EXPECT_EQ(algo.find("NCCL_ALGO: there is nothing called \"foo\"; the known names are tree, ring"),
            0u)
      << algo;
  EXPECT_NE(algo.find("one_shot"), std::string::npos) << algo;
  EXPECT_EQ(refusal("allreduce:", ""),
            "NCCL_ALGO: \"allreduce:\" needs one colon, with a collective before it and a list "
            "behind it");
  EXPECT_NE(refusal("pairwise", "").find("CATENARY_ALGO=pairwise takes it"), std::string::npos);
  EXPECT_EQ(refusal("", "Foo"),
            "NCCL_PROTO: there is nothing called \"Foo\"; the known names are ll, ll128, simple");
}

// Who tries NVLS on one rank first gets a copy, as NCCL does.
TEST(NcclAlgo, means_nothing_to_one_rank) {
  Selector one = selector(1, roomy(1), "", "nvls");
  EXPECT_NO_THROW(one.select(Collective::kAllReduce, 64));
}

TEST(NcclAlgo, that_leaves_nothing_is_an_error_of_the_operation) {
  Selector none = selector(4, roomy(4), "", "nvls");
  for (const std::size_t bytes : {std::size_t{8}, std::size_t{1} << 20}) {
    try {
      none.select(Collective::kAllReduce, bytes);
      FAIL() << "chose something";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidUsage);
      const std::string text = error.what();
      EXPECT_EQ(text.find("no algorithm available for function AllReduce of 4 ranks in boxes of 4. "
                          "NCCL_ALGO was set to nvls. Those that run here are "),
                0u)
          << text;
      EXPECT_NE(text.find("one_shot"), std::string::npos) << text;
      EXPECT_EQ(text.find("hier"), std::string::npos) << text << ": there is one machine only";
    }
  }
}

TEST(NcclProto, is_checked) {
  EXPECT_NO_THROW(AlgorithmRules("", "", "LL,Simple;allreduce:^LL128"));
  EXPECT_THROW(AlgorithmRules("", "", "LL129"), Error);
  EXPECT_THROW(AlgorithmRules("", "", "LL;Simple"), Error);
}

TEST(Rules, say_when_what_is_forced_does_not_run_here) {
  const AlgorithmRules rules("hier_ring_ring", "", "");
  EXPECT_NE(rules.passed_over({.ranks = 4, .box = 4}), "");
  EXPECT_EQ(rules.passed_over({.ranks = 4, .box = 2}), "");
  EXPECT_EQ(AlgorithmRules("ring", "", "").passed_over({.ranks = 4, .box = 4}), "");
  EXPECT_EQ(AlgorithmRules().passed_over({.ranks = 4, .box = 4}), "");
}

}  // namespace
}  // namespace catenary
