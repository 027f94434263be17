// Two-level schedules, composed of one-level ones: some among the ranks of a box, who share a
// machine, others among the ranks that have the same place in each box. Both kinds of group do
// their part side by side, and what crosses between machines does so once.
//
// Any inner algorithm goes with any outer one: they are arguments of a template, and the result is
// an algorithm like all others. It runs where there are several boxes of several ranks.
//
// Pure; any thread.
#pragma once

#include "src/collective/schedule.h"

namespace catenary {

using StepsOf = Steps (*)(Place);
using ChunksOf = int (*)(const Place&);

// A shard for each rank of a box: it is made inside of each box, goes across boxes, and is gathered
// inside.
struct ShardStages {
  StepsOf scatter;  // or reduce-scatter
  StepsOf across;   // the collective itself
  ChunksOf chunks;  // of `across`
  StepsOf gather;
};
Steps hierarchical_all_reduce(Place at, ShardStages stages);
Steps hierarchical_broadcast(Place at, ShardStages stages);

// What moves a part for each rank does so in a chunk for each, inside as across.
struct PartStages {
  StepsOf inside;
  StepsOf across;
};
Steps hierarchical_all_gather(Place at, PartStages stages);      // across, then inside
Steps hierarchical_reduce_scatter(Place at, PartStages stages);  // inside, then across
Steps hierarchical_all_to_all(Place at, PartStages stages);      // inside, then across

template <Steps (*kCollective)(Place, ShardStages), StepsOf kScatter, StepsOf kAcross,
          ChunksOf kChunks, StepsOf kGather>
Steps hierarchical(Place at) {
  return kCollective(at, {kScatter, kAcross, kChunks, kGather});
}
template <Steps (*kCollective)(Place, PartStages), StepsOf kInside, StepsOf kAcross>
Steps hierarchical(Place at) {
  return kCollective(at, {kInside, kAcross});
}

// As many chunks as the shards have together.
int chunks_of_shards(const Place& at, ChunksOf across);
template <ChunksOf kAcross>
int shard_chunks(const Place& at) {
  return chunks_of_shards(at, kAcross);
}

// Scratch chunks: what goes from one stage to the next, and behind that what the stage across needs
// itself. Those inside of a box need none.
int all_reduce_scratch_of(const Place& at, ChunksOf chunks_across, ChunksOf scratch_across);
int reduce_scatter_scratch_of(const Place& at, ChunksOf scratch_across);
int all_to_all_scratch_of(const Place& at, ChunksOf scratch_across);
template <ChunksOf kChunks, ChunksOf kScratch>
int all_reduce_scratch(const Place& at) {
  return all_reduce_scratch_of(at, kChunks, kScratch);
}
template <ChunksOf kScratch>
int reduce_scatter_scratch(const Place& at) {
  return reduce_scatter_scratch_of(at, kScratch);
}
template <ChunksOf kScratch>
int all_to_all_scratch(const Place& at) {
  return all_to_all_scratch_of(at, kScratch);
}

constexpr bool in_boxes(const Place& at) { return at.box > 1 && at.ranks > at.box; }

}  // namespace catenary
