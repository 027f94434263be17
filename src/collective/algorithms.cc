#include "src/collective/algorithms.h"

namespace catenary {
namespace {

constexpr Algorithm kAlgorithms[] = {
    {"ring", Collective::kAllReduce, ring_all_reduce},
    {"direct", Collective::kAllReduce, direct_all_reduce},
    {"one_shot", Collective::kAllReduce, one_shot_all_reduce},
    {"chain", Collective::kBroadcast, chain_broadcast},
    {"direct", Collective::kBroadcast, direct_broadcast},
    {"chain", Collective::kReduce, chain_reduce},
    {"direct", Collective::kReduce, direct_reduce},
    {"ring", Collective::kAllGather, ring_all_gather},
    {"direct", Collective::kAllGather, direct_all_gather},
    {"ring", Collective::kReduceScatter, ring_reduce_scatter},
    {"direct", Collective::kReduceScatter, direct_reduce_scatter},
    {"pairwise", Collective::kAllToAll, pairwise_all_to_all},
    {"direct", Collective::kAllToAll, direct_all_to_all},
    {"direct", Collective::kGather, direct_gather},
    {"direct", Collective::kScatter, direct_scatter},
    {"direct", Collective::kSend, direct_send},
    {"direct", Collective::kRecv, direct_recv},
};

}  // namespace

std::span<const Algorithm> algorithms() { return kAlgorithms; }

}  // namespace catenary
