// Every algorithm there is, each a pure function from a place in the communicator to that rank's
// schedule. The table is the single source for selection, tests, pictures and export; what is not
// in it is not checked, and so does not get in.
//
// What a chunk index means:
//   AllReduce, Broadcast, Reduce, Send, Recv   part index of `count` elements, in input as in
//   output AllGather, Gather        output(i) is what rank i gave; a rank gives input(0)
//   ReduceScatter, Scatter   input(i) is what rank i gets; a rank gets output(0)
//   AlltoAll                 input(i) goes to rank i, output(i) came from rank i
// scratch(i) is as long as chunk i. A step's chunks, and the two ends of a message, are equally
// long.
//
// The value of a step that reduces is `src` first, then what was received. Every schedule is right
// in place, for the layouts that NCCL documents (AllReduce, Reduce, Broadcast: input == output;
// AllGather, Gather: input == output + its own part; ReduceScatter, Scatter: output == input + its
// own part): no step reads input that an earlier one overwrote as output. A step whose src and dst
// are then the same memory has nothing to copy.
//
// Threads: any. Nothing waits or fails: arguments are checked where the user's enter,
// 0 <= rank, root < nranks.
#pragma once

#include <span>
#include <string_view>

#include "src/collective/operation.h"
#include "src/collective/schedule.h"

namespace catenary {

// `root` is the peer for Send and Recv, and ignored where has_root() is false.
using ScheduleFunction = Schedule (*)(int rank, int nranks, int root);

// Ring: every rank talks to its neighbours only. Least load on wires, most hops.
Schedule ring_all_reduce(int rank, int nranks, int root);
Schedule ring_all_gather(int rank, int nranks, int root);
Schedule ring_reduce_scatter(int rank, int nranks, int root);

// Chain: a ring cut open at the root. Slices of a long message follow each other down the chain.
Schedule chain_broadcast(int rank, int nranks, int root);
Schedule chain_reduce(int rank, int nranks, int root);

// Direct: every byte goes straight to where it is needed. Fewest hops and waits.
Schedule direct_all_reduce(int rank, int nranks, int root);
Schedule direct_all_gather(int rank, int nranks, int root);
Schedule direct_reduce_scatter(int rank, int nranks, int root);
Schedule direct_broadcast(int rank, int nranks, int root);
Schedule direct_reduce(int rank, int nranks, int root);
Schedule direct_all_to_all(int rank, int nranks, int root);
Schedule direct_gather(int rank, int nranks, int root);
Schedule direct_scatter(int rank, int nranks, int root);
Schedule direct_send(int rank, int nranks, int root);
Schedule direct_recv(int rank, int nranks, int root);

// One shot: every rank sends all it has to every rank, itself included, and all of them reduce the
// same messages in the same order. One hop, for messages whose size does not matter.
Schedule one_shot_all_reduce(int rank, int nranks, int root);

// Pairwise: all-to-all in rounds, each rank sending to one and receiving from one, so that little
// is in flight at a time.
Schedule pairwise_all_to_all(int rank, int nranks, int root);

struct Algorithm {
  std::string_view name;
  Collective collective;
  ScheduleFunction schedule;
};

// All of them; at least one for each collective.
std::span<const Algorithm> algorithms();

}  // namespace catenary
