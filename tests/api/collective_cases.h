// The matrix of correctness: collective x type x operation x count x in or out of place, each
// checked bit by bit against values computed here, on every element of every rank, with guards
// around the receive buffer. Inputs are small integers, so every order of reduction gives the same
// exact result.
#pragma once

#include <vector>

#include "nccl.h"

namespace catenary::testing {

// As users pass them; 5 stands for a premultiplied sum with the factor rank % 2 + 1.
inline constexpr int kPreMulSum = 5;

// Runs AllReduce for all types and operations at each count, on one stream of the rank's own.
void check_all_reduce(int rank, int nranks, ncclComm_t comm,
                      const std::vector<std::size_t>& counts);
// The others, at each count per rank, for all types (sum only where they reduce).
void check_other_collectives(int rank, int nranks, ncclComm_t comm,
                             const std::vector<std::size_t>& counts);
// Reduce and ReduceScatter with averages and premultiplied sums, and ReduceScatter in place.
void check_scaled_reductions(int rank, int nranks, ncclComm_t comm,
                             const std::vector<std::size_t>& counts);
// Sends to the next rank and receives from the previous one, in one group, for all types.
void check_send_recv(int rank, int nranks, ncclComm_t comm, const std::vector<std::size_t>& counts);

}  // namespace catenary::testing
