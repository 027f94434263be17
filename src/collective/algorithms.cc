#include "src/collective/algorithms.h"

#include <algorithm>

#include "src/collective/hierarchical.h"

namespace catenary {
namespace {

// hier_<inside>_<across>.
template <StepsOf kScatter, StepsOf kAcross, ChunksOf kChunks, StepsOf kGather,
          ChunksOf kScratch = no_scratch>
constexpr Algorithm all_reduce_in_boxes(std::string_view name, int lanes = 1,
                                        bool sends_ahead = false) {
  return {name,
          Collective::kAllReduce,
          hierarchical<hierarchical_all_reduce, kScatter, kAcross, kChunks, kGather>,
          shard_chunks<kChunks>,
          all_reduce_scratch<kChunks, kScratch>,
          lanes,
          sends_ahead,
          in_boxes};
}
template <StepsOf kAcross, StepsOf kGather>
constexpr Algorithm broadcast_in_boxes(std::string_view name) {
  return {name,
          Collective::kBroadcast,
          hierarchical<hierarchical_broadcast, direct_scatter, kAcross, one_chunk, kGather>,
          shard_chunks<one_chunk>,
          no_scratch,
          1,
          false,
          in_boxes};
}
template <Steps (*kCollective)(Place, PartStages), StepsOf kInside, StepsOf kAcross>
constexpr Algorithm parts_in_boxes(std::string_view name, Collective collective,
                                   ChunksOf scratch = no_scratch, bool sends_ahead = false) {
  return {name,           collective, hierarchical<kCollective, kInside, kAcross>,
          chunk_per_rank, scratch,    1,
          sends_ahead,    in_boxes};
}

constexpr Algorithm kAlgorithms[] = {
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
    all_reduce_in_boxes<direct_reduce_scatter, ring_all_reduce, chunk_per_rank, direct_all_gather>(
        "hier_direct_ring"),
    all_reduce_in_boxes<direct_reduce_scatter, tree_all_reduce, one_chunk, direct_all_gather>(
        "hier_direct_tree"),
    all_reduce_in_boxes<direct_reduce_scatter, double_tree_all_reduce, tree_chunks,
                        direct_all_gather>("hier_direct_double_tree", 2),
    all_reduce_in_boxes<direct_reduce_scatter, halving_doubling_all_reduce, chunk_per_corner,
                        direct_all_gather, chunk_per_corner>("hier_direct_halving_doubling", 1,
                                                             true),
    all_reduce_in_boxes<ring_reduce_scatter, ring_all_reduce, chunk_per_rank, ring_all_gather>(
        "hier_ring_ring"),
    all_reduce_in_boxes<ring_reduce_scatter, tree_all_reduce, one_chunk, ring_all_gather>(
        "hier_ring_tree"),
    {"chain", Collective::kBroadcast, chain_broadcast, one_chunk},
    {"direct", Collective::kBroadcast, direct_broadcast, one_chunk},
    {"tree", Collective::kBroadcast, tree_broadcast, one_chunk},
    {"knomial4", Collective::kBroadcast, knomial4_broadcast, one_chunk},
    {"double_tree", Collective::kBroadcast, double_tree_broadcast, tree_chunks, no_scratch, 2},
    broadcast_in_boxes<chain_broadcast, direct_all_gather>("hier_direct_chain"),
    broadcast_in_boxes<tree_broadcast, direct_all_gather>("hier_direct_tree"),
    broadcast_in_boxes<chain_broadcast, ring_all_gather>("hier_ring_chain"),
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
    parts_in_boxes<hierarchical_all_gather, direct_all_gather, ring_all_gather>(
        "hier_direct_ring", Collective::kAllGather),
    parts_in_boxes<hierarchical_all_gather, direct_all_gather, pat_all_gather>(
        "hier_direct_pat", Collective::kAllGather, no_scratch, true),
    parts_in_boxes<hierarchical_all_gather, ring_all_gather, ring_all_gather>(
        "hier_ring_ring", Collective::kAllGather),
    {"ring", Collective::kReduceScatter, ring_reduce_scatter, chunk_per_rank},
    {"direct", Collective::kReduceScatter, direct_reduce_scatter, chunk_per_rank},
    {"recursive_halving", Collective::kReduceScatter, recursive_halving_reduce_scatter,
     chunk_per_rank, chunk_per_rank, 1, true},
    {"pat", Collective::kReduceScatter, pat_reduce_scatter, chunk_per_rank, pat_sums, 1, true},
    parts_in_boxes<hierarchical_reduce_scatter, direct_reduce_scatter, ring_reduce_scatter>(
        "hier_direct_ring", Collective::kReduceScatter, reduce_scatter_scratch<no_scratch>),
    parts_in_boxes<hierarchical_reduce_scatter, direct_reduce_scatter, pat_reduce_scatter>(
        "hier_direct_pat", Collective::kReduceScatter, reduce_scatter_scratch<pat_sums>, true),
    parts_in_boxes<hierarchical_reduce_scatter, ring_reduce_scatter, ring_reduce_scatter>(
        "hier_ring_ring", Collective::kReduceScatter, reduce_scatter_scratch<no_scratch>),
    {"pairwise", Collective::kAllToAll, pairwise_all_to_all, chunk_per_rank},
    {"direct", Collective::kAllToAll, direct_all_to_all, chunk_per_rank},
    {"bruck", Collective::kAllToAll, bruck_all_to_all, chunk_per_rank, chunk_per_rank, 1, true},
    parts_in_boxes<hierarchical_all_to_all, direct_all_to_all, pairwise_all_to_all>(
        "hier_direct_pairwise", Collective::kAllToAll, all_to_all_scratch<no_scratch>),
    parts_in_boxes<hierarchical_all_to_all, direct_all_to_all, bruck_all_to_all>(
        "hier_direct_bruck", Collective::kAllToAll, all_to_all_scratch<chunk_per_rank>, true),
    {"direct", Collective::kGather, direct_gather, chunk_per_rank},
    {"tree", Collective::kGather, tree_gather, chunk_per_rank},
    {"direct", Collective::kScatter, direct_scatter, chunk_per_rank},
    {"tree", Collective::kScatter, tree_scatter, chunk_per_rank},
    {"direct", Collective::kSend, direct_send, one_chunk},
    {"direct", Collective::kRecv, direct_recv, one_chunk},
};

Steps copy_of_one(Place /*at*/) { co_yield {.src = input(0), .dst = output(0)}; }

}  // namespace

std::span<const Algorithm> algorithms() { return kAlgorithms; }

const Algorithm* find_algorithm(Collective collective, std::string_view name) {
  const Collective twin = twin_of(collective);
  const auto found = std::ranges::find_if(kAlgorithms, [&](const Algorithm& algorithm) {
    return algorithm.collective == twin && algorithm.name == name &&
           (!is_uneven(collective) || keeps_parts(algorithm)) &&
           (collective != Collective::kBarrier || opens_links_only(algorithm));
  });
  return found == std::end(kAlgorithms) ? nullptr : found;
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
