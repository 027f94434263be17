// What ranks tell each other through torch's Store: where to meet, and who has come to a monitored
// barrier, which must work while nothing else does.
//
// Threads: any, each with its own Store. Waiting: both, up to the timeout. Failure: c10::Error that
// names who did not come.
#pragma once

#include <nccl.h>

#include <chrono>
#include <torch/csrc/distributed/c10d/Store.hpp>

namespace catenary_torch {

struct Ids {
  ncclUniqueId collectives;
  ncclUniqueId messages;
};

// Returns when all ranks have called it.
Ids meet(c10d::Store& store, int rank, int size, std::chrono::milliseconds timeout);

// The n-th of the group. Rank 0 waits for all others; they wait for what it says then.
void monitored_barrier(c10d::Store& store, int rank, int size, std::uint64_t n,
                       std::chrono::milliseconds timeout, bool wait_all_ranks);

}  // namespace catenary_torch
