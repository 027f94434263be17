#include "src/collective/algorithms.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iterator>
#include <utility>

#include "src/collective/algorithms/hierarchical.h"

namespace catenary {
namespace {

// One level.
constexpr Algorithm kFlat[] = {
    {"ring", Collective::kAllReduce, ring_all_reduce, chunk_per_rank},
    {"direct", Collective::kAllReduce, direct_all_reduce, chunk_per_rank},
    {"one_shot", Collective::kAllReduce, one_shot_all_reduce, one_chunk},
    {"tree", Collective::kAllReduce, tree_all_reduce, one_chunk},
    {"knomial4", Collective::kAllReduce, knomial4_all_reduce, one_chunk},
    {"double_tree", Collective::kAllReduce, double_tree_all_reduce, tree_chunks, no_scratch, 2},
    {"recursive_doubling", Collective::kAllReduce, recursive_doubling_all_reduce, one_chunk,
     one_chunk},
    {"halving_doubling", Collective::kAllReduce, halving_doubling_all_reduce, chunk_per_corner,
     chunk_per_corner, 1, true},
    {"chain", Collective::kBroadcast, chain_broadcast, one_chunk},
    {"direct", Collective::kBroadcast, direct_broadcast, one_chunk},
    {"tree", Collective::kBroadcast, tree_broadcast, one_chunk},
    {"knomial4", Collective::kBroadcast, knomial4_broadcast, one_chunk},
    {"double_tree", Collective::kBroadcast, double_tree_broadcast, tree_chunks, no_scratch, 2},
    {"chain", Collective::kReduce, chain_reduce, one_chunk},
    {"direct", Collective::kReduce, direct_reduce, one_chunk},
    {"tree", Collective::kReduce, tree_reduce, one_chunk},
    {"knomial4", Collective::kReduce, knomial4_reduce, one_chunk},
    {"double_tree", Collective::kReduce, double_tree_reduce, tree_chunks, no_scratch, 2},
    {"ring", Collective::kAllGather, ring_all_gather, chunk_per_rank},
    {"direct", Collective::kAllGather, direct_all_gather, chunk_per_rank},
    {"recursive_doubling", Collective::kAllGather, recursive_doubling_all_gather, chunk_per_rank,
     no_scratch, 1, true},
    {"bruck", Collective::kAllGather, bruck_all_gather, chunk_per_rank, no_scratch, 1, true},
    {"pat", Collective::kAllGather, pat_all_gather, chunk_per_rank, no_scratch, 1, true},
    {"ring", Collective::kReduceScatter, ring_reduce_scatter, chunk_per_rank},
    {"direct", Collective::kReduceScatter, direct_reduce_scatter, chunk_per_rank},
    {"recursive_halving", Collective::kReduceScatter, recursive_halving_reduce_scatter,
     chunk_per_rank, chunk_per_rank, 1, true},
    {"pat", Collective::kReduceScatter, pat_reduce_scatter, chunk_per_rank, pat_sums, 1, true},
    {"pairwise", Collective::kAllToAll, pairwise_all_to_all, chunk_per_rank},
    {"direct", Collective::kAllToAll, direct_all_to_all, chunk_per_rank},
    {"bruck", Collective::kAllToAll, bruck_all_to_all, chunk_per_rank, chunk_per_rank, 1, true},
    {"direct", Collective::kGather, direct_gather, chunk_per_rank},
    {"tree", Collective::kGather, tree_gather, chunk_per_rank},
    {"direct", Collective::kScatter, direct_scatter, chunk_per_rank},
    {"tree", Collective::kScatter, tree_scatter, chunk_per_rank},
    {"direct", Collective::kSend, direct_send, one_chunk},
    {"direct", Collective::kRecv, direct_recv, one_chunk},
};

// How the two levels of a pair are put together.
struct Composition {
  Steps (*steps)(Place, Stages);
  int (*chunks)(const Place&, const Stages&);
  int (*scratch)(const Place&, const Stages&);
};
constexpr Composition kGathered = {hierarchical_all_gather, chunks_of_ranks, all_gather_scratch};
constexpr Composition kScattered = {hierarchical_reduce_scatter, chunks_of_ranks,
                                    reduce_scatter_scratch};
constexpr Composition kExchanged = {hierarchical_all_to_all, chunks_of_ranks, all_to_all_scratch};
constexpr Composition kSharded = {hierarchical_all_reduce, chunks_of_shards, all_reduce_scratch};
constexpr Composition kWhole = {hierarchical_all_reduce_whole, chunks_of_whole,
                                all_reduce_whole_scratch};
constexpr Composition kBroadcastSharded = {hierarchical_broadcast, chunks_of_shards,
                                           broadcast_scratch};
constexpr Composition kBroadcastWhole = {hierarchical_broadcast_whole, chunks_of_whole,
                                         broadcast_whole_scratch};

// What one algorithm, or two that fit each other, do inside of boxes.
struct Inside {
  std::string_view name;
  Composition composition;
  StepsOf scatter = nullptr;
  StepsOf gather = nullptr;
  ChunksOf scratch = no_scratch;
  bool sends_ahead = false;
  ChunksOf chunks = one_chunk;
  int lanes = 1;
};

// All flat algorithms of a collective.
template <Collective kCollective>
constexpr auto kFlatOf = [] {
  constexpr auto is_one = [](const Algorithm& flat) { return flat.collective == kCollective; };
  std::array<Algorithm, std::ranges::count_if(kFlat, is_one)> found{};
  std::ranges::copy_if(kFlat, found.begin(), is_one);
  return found;
}();

// What runs inside for a collective: all algorithms of its own, before what goes across, or behind.
template <Collective kCollective>
constexpr auto inside_of(const Composition& composition, StepsOf Inside::*stage) {
  std::array<Inside, kFlatOf<kCollective>.size()> all{};
  std::ranges::transform(kFlatOf<kCollective>, all.begin(), [&](const Algorithm& flat) {
    Inside inside{.name = flat.name, .composition = composition};
    inside.*stage = flat.steps;
    inside.scratch = flat.scratch;
    inside.sends_ahead = flat.sends_ahead;
    return inside;
  });
  return all;
}
template <Collective kCollective>
constexpr auto kInsides = std::array<Inside, 0>{};
template <>
constexpr auto kInsides<Collective::kAllGather> =
    inside_of<Collective::kAllGather>(kGathered, &Inside::gather);
template <>
constexpr auto kInsides<Collective::kReduceScatter> =
    inside_of<Collective::kReduceScatter>(kScattered, &Inside::scatter);
template <>
constexpr auto kInsides<Collective::kAllToAll> =
    inside_of<Collective::kAllToAll>(kExchanged, &Inside::scatter);
// Messages that are cut into shards for the ranks of a box: they begin at one of these, whose links
// carry them once, however they are scattered. Or whole ones: the collective's own `direct`, whose
// name is taken, is one shot.
template <>
constexpr auto kInsides<Collective::kBroadcast> = [] {
  auto shards = inside_of<Collective::kAllGather>(kBroadcastSharded, &Inside::gather);
  for (Inside& inside : shards) inside.scatter = direct_scatter;
  constexpr auto kWholes = std::to_array<Inside>({
      {"chain", kBroadcastWhole, nullptr, chain_broadcast},
      {"one_shot", kBroadcastWhole, nullptr, direct_broadcast},
      {"tree", kBroadcastWhole, nullptr, tree_broadcast},
      {"knomial4", kBroadcastWhole, nullptr, knomial4_broadcast},
      {"double_tree", kBroadcastWhole, nullptr, double_tree_broadcast, no_scratch, false,
       tree_chunks, 2},
  });
  std::array<Inside, shards.size() + kWholes.size()> all{};
  std::ranges::copy(kWholes, std::ranges::copy(shards, all.begin()).out);
  return all;
}();
// Shards differ in length, and each sum has scratch of its own length.
template <>
constexpr auto kInsides<Collective::kAllReduce> = std::to_array<Inside>({
    {"direct", kSharded, direct_reduce_scatter, direct_all_gather},
    {"ring", kSharded, ring_reduce_scatter, ring_all_gather},
    {"halving_doubling", kSharded, recursive_halving_reduce_scatter, recursive_doubling_all_gather,
     chunk_per_rank, true},
    {"pat", kSharded, pat_reduce_scatter_uneven, pat_all_gather, chunk_per_rank, true},
    {"one_shot", kWhole, one_shot_all_reduce},
    {"recursive_doubling", kWhole, recursive_doubling_all_reduce, nullptr, one_chunk},
    {"tree", kWhole, tree_reduce, tree_broadcast},
    {"knomial4", kWhole, knomial4_reduce, knomial4_broadcast},
    {"double_tree", kWhole, double_tree_reduce, double_tree_broadcast, no_scratch, false,
     tree_chunks, 2},
});

// The pairs that cost chooses among: with few of them, it does nearly as well as with all, for 2 to
// 256 boxes of 2 to 16 ranks (docs/decisions/0013-choice-by-cost.md).
constexpr std::pair<Collective, std::string_view> kChosenPairs[] = {
    {Collective::kAllReduce, "hier_recursive_doubling_one_shot"},
    {Collective::kAllReduce, "hier_knomial4_one_shot"},
    {Collective::kAllReduce, "hier_knomial4_recursive_doubling"},
    {Collective::kAllReduce, "hier_direct_recursive_doubling"},
    {Collective::kAllReduce, "hier_direct_knomial4"},
    {Collective::kAllReduce, "hier_ring_tree"},
    {Collective::kAllReduce, "hier_ring_halving_doubling"},
    {Collective::kAllReduce, "hier_ring_direct"},
    {Collective::kAllReduce, "hier_ring_ring"},
    {Collective::kBroadcast, "hier_knomial4_direct"},
    {Collective::kBroadcast, "hier_direct_direct"},
    {Collective::kBroadcast, "hier_direct_knomial4"},
    {Collective::kBroadcast, "hier_ring_knomial4"},
    {Collective::kBroadcast, "hier_ring_chain"},
    {Collective::kAllGather, "hier_direct_direct"},
    {Collective::kAllGather, "hier_direct_recursive_doubling"},
    {Collective::kAllGather, "hier_ring_recursive_doubling"},
    {Collective::kAllGather, "hier_ring_ring"},
    {Collective::kReduceScatter, "hier_direct_direct"},
    {Collective::kReduceScatter, "hier_direct_recursive_halving"},
    {Collective::kReduceScatter, "hier_direct_ring"},
    {Collective::kReduceScatter, "hier_ring_ring"},
    {Collective::kAllToAll, "hier_direct_direct"},
    {Collective::kAllToAll, "hier_direct_pairwise"},
    {Collective::kAllToAll, "hier_direct_bruck"},
};

template <Collective kCollective, std::size_t kInsideIndex, std::size_t kAcrossIndex>
struct Pair {
  static constexpr Inside kInside = kInsides<kCollective>[kInsideIndex];
  static constexpr Algorithm kAcross = kFlatOf<kCollective>[kAcrossIndex];
  static constexpr Composition kComposition = kInside.composition;
  static constexpr Stages kStages{.scatter = kInside.scatter,
                                  .across = kAcross.steps,
                                  .gather = kInside.gather,
                                  .chunks_inside = kInside.chunks,
                                  .chunks_across = kAcross.chunks,
                                  .scratch_inside = kInside.scratch,
                                  .scratch_across = kAcross.scratch};

  static constexpr std::string_view kPrefix = "hier_";
  static constexpr auto kName = [] {
    std::array<char, kPrefix.size() + kInside.name.size() + 1 + kAcross.name.size()> name{};
    auto end = name.begin();
    for (const std::string_view piece :
         {kPrefix, kInside.name, std::string_view("_"), kAcross.name})
      end = std::ranges::copy(piece, end).out;
    return name;
  }();

  static Steps steps(Place at) { return kComposition.steps(at, kStages); }
  static int chunks(const Place& at) { return kComposition.chunks(at, kStages); }
  static int scratch(const Place& at) { return kComposition.scratch(at, kStages); }

  static constexpr Algorithm algorithm() {
    const std::string_view name(kName.data(), kName.size());
    return {.name = name,
            .collective = kCollective,
            .steps = steps,
            .chunks = chunks,
            .scratch = scratch,
            .lanes = std::max(kInside.lanes, kAcross.lanes),
            .sends_ahead = kInside.sends_ahead || kAcross.sends_ahead,
            .runs_on = in_boxes,
            .chosen_by_cost = std::ranges::find(kChosenPairs, std::pair(kCollective, name)) !=
                              std::end(kChosenPairs),
            .inside = kInside.name,
            .across = kAcross.name};
  }
};

template <Collective kCollective, std::size_t... kIndex>
constexpr auto pairs(std::index_sequence<kIndex...> /*all*/) {
  constexpr std::size_t kAcross = kFlatOf<kCollective>.size();
  return std::array{Pair<kCollective, kIndex / kAcross, kIndex % kAcross>::algorithm()...};
}
template <Collective kCollective>
constexpr auto kPairsOf = pairs<kCollective>(
    std::make_index_sequence<kInsides<kCollective>.size() * kFlatOf<kCollective>.size()>());

template <const auto&... kLists>
constexpr auto joined() {
  std::array<Algorithm, (std::size(kLists) + ...)> all{};
  auto end = all.begin();
  ((end = std::ranges::copy(kLists, end).out), ...);
  return all;
}

constexpr auto kAlgorithms =
    joined<kFlat, kPairsOf<Collective::kAllReduce>, kPairsOf<Collective::kBroadcast>,
           kPairsOf<Collective::kAllGather>, kPairsOf<Collective::kReduceScatter>,
           kPairsOf<Collective::kAllToAll>>();
static_assert(kAlgorithms.size() <= 255, "descriptors tell an algorithm's number in a byte");
static_assert(std::ranges::count_if(kAlgorithms, &Algorithm::chosen_by_cost) ==
                  std::ssize(kFlat) + std::ssize(kChosenPairs),
              "a pair is listed that does not exist");

// Each lane copies input that lies in the way of output (src/comm/overlap.h), before any writes.
static_assert(std::ranges::none_of(kAlgorithms,
                                   [](const Algorithm& algorithm) {
                                     return algorithm.lanes > 1 &&
                                            holds_part_per_rank(algorithm.collective);
                                   }),
              "lanes would have to wait for each other's copies");

Steps copy_of_one(Place /*at*/) { co_yield {.src = input(0), .dst = output(0)}; }

}  // namespace

std::span<const Algorithm> algorithms() { return kAlgorithms; }

bool performs(const Algorithm& algorithm, Collective collective) {
  return algorithm.collective == twin_of(collective) &&
         (!is_uneven(collective) || keeps_parts(algorithm)) &&
         (collective != Collective::kBarrier || opens_links_only(algorithm));
}

const Algorithm* find_algorithm(Collective collective, std::string_view name) {
  const auto found = std::ranges::find_if(kAlgorithms, [&](const Algorithm& algorithm) {
    return performs(algorithm, collective) && algorithm.name == name;
  });
  return found == std::end(kAlgorithms) ? nullptr : &*found;
}

bool keeps_parts(const Algorithm& algorithm) {
  constexpr std::string_view kNames[] = {"ring", "direct", "pairwise"};
  const bool has_parts = algorithm.collective == Collective::kAllGather ||
                         algorithm.collective == Collective::kReduceScatter ||
                         algorithm.collective == Collective::kAllToAll;
  return has_parts && std::ranges::find(kNames, algorithm.name) != std::end(kNames);
}

bool opens_links_only(const Algorithm& algorithm) {
  return algorithm.collective == Collective::kAllReduce &&
         (algorithm.name == "one_shot" || algorithm.name == "recursive_doubling");
}

Steps steps_of(const Algorithm& algorithm, Place at) {
  const bool alone = at.ranks == 1 && algorithm.collective != Collective::kSend &&
                     algorithm.collective != Collective::kRecv;
  return alone ? copy_of_one(at) : algorithm.steps(at);
}

Schedule schedule_of(const Algorithm& algorithm, const Place& at) {
  Schedule schedule{.chunk_count = algorithm.chunks(at), .steps = {}};
  for (const Step& step : steps_of(algorithm, at)) schedule.add(step);
  return schedule;
}

}  // namespace catenary
