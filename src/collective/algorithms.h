// Every algorithm there is, each a pure function from a place to the steps of the rank that stands
// there. The table is the single source for selection, tests, pictures and export; what is not in
// it is not checked, and so does not get in.
//
// What a chunk index means:
//   AllReduce, Broadcast, Reduce, Send, Recv   part index of `count` elements, in input as in
//   output
//   AllGather, Gather        output(i) is what rank i gave; a rank gives input(0)
//   ReduceScatter, Scatter   input(i) is what rank i gets; a rank gets output(0)
//   AlltoAll                 input(i) goes to rank i, output(i) came from rank i
//   AllGatherv, ReduceScatterv, AlltoAllv   the same, of parts that may differ in length
//   Barrier                  an AllReduce of nothing: what ranks wait for is each other's openings
// A step's chunks, and the two ends of a message, are equally long.
//
// A collective that has levels (AllReduce, Broadcast, AllGather, ReduceScatter, AlltoAll) runs with
// any of its algorithms across boxes, and inside of them with any of its own or, for AllReduce and
// Broadcast, of those that make and gather shards: the pair is called hier_<inside>_<across>.
// (Inside, a broadcast's own `direct` is called one_shot, since shards go by one of that name.)
//
// Every schedule is right in place, for the layouts that NCCL documents (AllReduce, Reduce,
// Broadcast: input == output; and so for AlltoAll, which NCCL leaves undefined; AllGather, Gather:
// input == output + its own part; ReduceScatter, Scatter: output == input + its own part): no step
// reads input that an earlier one overwrote as output. A step whose src and dst are then the same
// memory has nothing to copy.
//
// Threads: any. Nothing waits or fails: arguments are checked where the user's enter,
// 0 <= rank, root < ranks. The functions are only asked for two ranks or more; one rank copies.
#pragma once

#include <span>
#include <string_view>

#include "src/collective/operation.h"
#include "src/collective/schedule.h"

namespace catenary {

// Ring: every rank talks to its neighbours only. Least load on wires, most hops.
Steps ring_all_reduce(Place at);
Steps ring_all_gather(Place at);
Steps ring_reduce_scatter(Place at);

// Chain: a ring cut open at the root. Slices of a long message follow each other down the chain.
Steps chain_broadcast(Place at);
Steps chain_reduce(Place at);

// Direct: every byte goes straight to where it is needed. Fewest hops and waits.
Steps direct_all_reduce(Place at);
Steps direct_all_gather(Place at);
Steps direct_reduce_scatter(Place at);
Steps direct_broadcast(Place at);
Steps direct_reduce(Place at);
Steps direct_all_to_all(Place at);
Steps direct_gather(Place at);
Steps direct_scatter(Place at);
Steps direct_send(Place at);
Steps direct_recv(Place at);

// One shot: every rank sends all it has to every rank, itself included, and all of them reduce the
// same messages in the same order. One hop, for messages whose size does not matter.
Steps one_shot_all_reduce(Place at);

// Pairwise: all-to-all in rounds, in each of which two ranks exchange, so that little is in flight
// at a time.
Steps pairwise_all_to_all(Place at);

// Trees (algorithms/tree.h): logarithmic depth. Binomial, and of radix 4: one chunk, for short
// messages. Two binary trees at once, one a lane, that share the work evenly: chunks follow each
// other, for long messages to and from many ranks.
Steps tree_all_reduce(Place at);
Steps tree_broadcast(Place at);
Steps tree_reduce(Place at);
Steps tree_gather(Place at);
Steps tree_scatter(Place at);
Steps knomial4_all_reduce(Place at);
Steps knomial4_broadcast(Place at);
Steps knomial4_reduce(Place at);
Steps double_tree_all_reduce(Place at);
Steps double_tree_broadcast(Place at);
Steps double_tree_reduce(Place at);

// Doubling and halving, with partners that differ in one bit of their number: logarithmically many
// rounds. Doubling alone moves the whole message each round.
Steps recursive_doubling_all_reduce(Place at);
Steps recursive_doubling_all_gather(Place at);
Steps halving_doubling_all_reduce(Place at);
Steps recursive_halving_reduce_scatter(Place at);
int chunk_per_corner(const Place& at);

// Bruck: logarithmically many rounds round the circle, for any number of ranks alike.
Steps bruck_all_gather(Place at);
Steps bruck_all_to_all(Place at);

// PAT: logarithmically many rounds of which the longest way has least to carry; scratch for
// logarithmically many sums, or for one of each chunk where they differ in length.
Steps pat_all_gather(Place at);
Steps pat_reduce_scatter(Place at);
Steps pat_reduce_scatter_uneven(Place at);
int pat_sums(const Place& at);

// How many parts an algorithm cuts the buffers into: the same for all ranks, lanes and windows; one
// if there is one rank.
constexpr int one_chunk(const Place& /*at*/) { return 1; }
constexpr int chunk_per_rank(const Place& at) { return at.ranks; }
// Enough to keep the links of a deep tree busy, not so many that messages become too short.
inline constexpr int kTreeChunks = 8;
constexpr int tree_chunks(const Place& at) { return at.ranks > 1 ? kTreeChunks : 1; }

// How many scratch chunks a rank has at most. What a schedule uses beyond is a fault.
constexpr int no_scratch(const Place& /*at*/) { return 0; }

// Which ranks may run an algorithm: a matter of what all of them have in common.
constexpr bool anywhere(const Place& /*at*/) { return true; }

struct Algorithm {
  std::string_view name;
  Collective collective;
  Steps (*steps)(Place);
  int (*chunks)(const Place&);
  int (*scratch)(const Place&) = no_scratch;
  int lanes = 1;             // that it is made for
  bool sends_ahead = false;  // whether the steps depend on Place.window
  bool (*runs_on)(const Place&) = anywhere;
  // Whether it is among those that are chosen by what they cost. Others are as good, but run only
  // where they are named: pricing so many would make first operations slow.
  bool chosen_by_cost = true;
  // Of a pair (algorithms/hierarchical.h): whose stages run inside of boxes, and across them.
  std::string_view inside = {};
  std::string_view across = {};
};

// All of them; at least one for each collective.
std::span<const Algorithm> algorithms();

// Whether no chunk ever travels or rests under the length of another, so that parts may be uneven;
// proved. Its twin's algorithms of which that is so are those of an uneven collective.
bool keeps_parts(const Algorithm& algorithm);
// Whether each message is the first one on its link, and so is sent even without elements; proved.
// An all-reduce of which that is so is a barrier: what would be every rank's part of the sum is
// every rank's word that it is there.
bool opens_links_only(const Algorithm& algorithm);

// Whether it is one of a collective's.
bool performs(const Algorithm& algorithm, Collective collective);
// The one of that name, or null.
const Algorithm* find_algorithm(Collective collective, std::string_view name);

// What the rank does, also if it is the only one.
Steps steps_of(const Algorithm& algorithm, Place at);
Schedule schedule_of(const Algorithm& algorithm, const Place& at);

}  // namespace catenary
