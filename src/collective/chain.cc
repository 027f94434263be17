// Schedules that pass the whole message down a chain of all ranks that starts or ends at the root.
// The message is one chunk; its slices follow each other, so all ranks of the chain work at once.
#include "src/collective/algorithms.h"
#include "src/collective/steps.h"

namespace catenary {

// root, root + 1, ..., root - 1.
Schedule chain_broadcast(int rank, int nranks, int root) {
  Schedule schedule;
  const int next = rank_after(rank, 1, nranks);
  Step step{.dst = output(0)};
  if (rank == root) {
    step.src = input(0);
  } else {
    step.recv_from = rank_after(rank, -1, nranks);
  }
  if (next != root) step.send_to = next;
  schedule.add(step);
  return schedule;
}

// root + 1, root + 2, ..., root.
Schedule chain_reduce(int rank, int nranks, int root) {
  Schedule schedule;
  Step step{.src = input(0)};
  if (rank_after(rank, -1, nranks) != root) step.recv_from = rank_after(rank, -1, nranks);
  if (rank == root) {
    step.dst = output(0);
  } else {
    step.send_to = rank_after(rank, 1, nranks);
  }
  schedule.add(step);
  return schedule;
}

}  // namespace catenary
