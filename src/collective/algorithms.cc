#include "src/collective/algorithms.h"

#include <algorithm>

namespace catenary {
namespace {

constexpr Algorithm kAlgorithms[] = {
    {"ring", Collective::kAllReduce, ring_all_reduce, chunk_per_rank},
    {"direct", Collective::kAllReduce, direct_all_reduce, chunk_per_rank},
    {"one_shot", Collective::kAllReduce, one_shot_all_reduce, one_chunk},
    {"tree", Collective::kAllReduce, tree_all_reduce, one_chunk},
    {"knomial4", Collective::kAllReduce, knomial4_all_reduce, one_chunk},
    {"double_tree", Collective::kAllReduce, double_tree_all_reduce, tree_chunks, 2},
    {"recursive_doubling", Collective::kAllReduce, recursive_doubling_all_reduce, one_chunk},
    {"halving_doubling", Collective::kAllReduce, halving_doubling_all_reduce, chunk_per_corner, 1,
     true},
    {"chain", Collective::kBroadcast, chain_broadcast, one_chunk},
    {"direct", Collective::kBroadcast, direct_broadcast, one_chunk},
    {"tree", Collective::kBroadcast, tree_broadcast, one_chunk},
    {"knomial4", Collective::kBroadcast, knomial4_broadcast, one_chunk},
    {"double_tree", Collective::kBroadcast, double_tree_broadcast, tree_chunks, 2},
    {"chain", Collective::kReduce, chain_reduce, one_chunk},
    {"direct", Collective::kReduce, direct_reduce, one_chunk},
    {"tree", Collective::kReduce, tree_reduce, one_chunk},
    {"knomial4", Collective::kReduce, knomial4_reduce, one_chunk},
    {"double_tree", Collective::kReduce, double_tree_reduce, tree_chunks, 2},
    {"ring", Collective::kAllGather, ring_all_gather, chunk_per_rank},
    {"direct", Collective::kAllGather, direct_all_gather, chunk_per_rank},
    {"recursive_doubling", Collective::kAllGather, recursive_doubling_all_gather, chunk_per_rank, 1,
     true},
    {"bruck", Collective::kAllGather, bruck_all_gather, chunk_per_rank, 1, true},
    {"pat", Collective::kAllGather, pat_all_gather, chunk_per_rank, 1, true},
    {"ring", Collective::kReduceScatter, ring_reduce_scatter, chunk_per_rank},
    {"direct", Collective::kReduceScatter, direct_reduce_scatter, chunk_per_rank},
    {"recursive_halving", Collective::kReduceScatter, recursive_halving_reduce_scatter,
     chunk_per_rank, 1, true},
    {"pat", Collective::kReduceScatter, pat_reduce_scatter, chunk_per_rank, 1, true},
    {"pairwise", Collective::kAllToAll, pairwise_all_to_all, chunk_per_rank},
    {"direct", Collective::kAllToAll, direct_all_to_all, chunk_per_rank},
    {"bruck", Collective::kAllToAll, bruck_all_to_all, chunk_per_rank, 1, true},
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
  const auto found = std::ranges::find_if(kAlgorithms, [&](const Algorithm& algorithm) {
    return algorithm.collective == collective && algorithm.name == name;
  });
  return found == std::end(kAlgorithms) ? nullptr : found;
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
