// Two-level schedules, composed of one-level ones: some among the ranks of a box, who share a
// machine, others among the ranks that have the same place in each box. Both kinds of group do
// their part side by side, and what crosses between machines does so once.
//
// Any inner algorithm goes with any outer one, whatever scratch they need, however they cut and
// however far they send ahead; the result is an algorithm like all others (the list in
// algorithms.cc makes one of every pair). It runs where there are several boxes of several ranks.
//
// Pure; any thread.
#pragma once

#include "src/collective/schedule.h"

namespace catenary {

using StepsOf = Steps (*)(Place);
using ChunksOf = int (*)(const Place&);

// What an algorithm of two levels is made of. Where one stage inside of a box does, it is `gather`
// if it comes behind what goes across, and `scatter` if it comes before.
struct Stages {
  StepsOf scatter = nullptr;  // or reduce-scatter, or all-to-all
  StepsOf across = nullptr;   // the collective itself
  StepsOf gather = nullptr;
  ChunksOf chunks_inside = nullptr;  // where they are not shards or ranks
  ChunksOf chunks_across = nullptr;
  ChunksOf scratch_inside = nullptr;  // of scatter and gather, the larger
  ChunksOf scratch_across = nullptr;
};

// A shard for each rank of a box: it is made inside of each box, goes across boxes, and is gathered
// inside. Of the stages inside, scratch(i) must be as long as the i-th shard, counted modulo their
// number: shards may differ in length.
Steps hierarchical_all_reduce(Place at, Stages stages);
Steps hierarchical_broadcast(Place at, Stages stages);

// The message stays whole: fewest hops, for short ones. Of an all-reduce, `scatter` sums inside of
// a box. If there is a `gather`, that is to one rank, which alone goes across, and then broadcasts;
// else it is an all-reduce, and all ranks go across. A broadcast goes across from the root, and
// then inside.
Steps hierarchical_all_reduce_whole(Place at, Stages stages);
Steps hierarchical_broadcast_whole(Place at, Stages stages);

// What moves a part for each rank does so in a chunk for each, inside as across.
Steps hierarchical_all_gather(Place at, Stages stages);      // across, then inside
Steps hierarchical_reduce_scatter(Place at, Stages stages);  // inside, then across
Steps hierarchical_all_to_all(Place at, Stages stages);      // inside, then across

// As many chunks as the shards have together, as both levels cut, or one for each rank.
int chunks_of_ranks(const Place& at, const Stages& stages);
int chunks_of_shards(const Place& at, const Stages& stages);
int chunks_of_whole(const Place& at, const Stages& stages);

// Scratch chunks: what goes from one stage to the next, and behind that what the stages need
// themselves. They run one after the other, so all of them in the same place.
int all_reduce_scratch(const Place& at, const Stages& stages);
int broadcast_scratch(const Place& at, const Stages& stages);
int all_reduce_whole_scratch(const Place& at, const Stages& stages);
int broadcast_whole_scratch(const Place& at, const Stages& stages);
int all_gather_scratch(const Place& at, const Stages& stages);
int reduce_scatter_scratch(const Place& at, const Stages& stages);
int all_to_all_scratch(const Place& at, const Stages& stages);

constexpr bool in_boxes(const Place& at) { return at.box > 1 && at.ranks > at.box; }

}  // namespace catenary
