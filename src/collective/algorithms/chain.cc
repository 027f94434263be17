// Schedules that pass the whole message down a chain of all ranks that starts or ends at the root.
// The message is one chunk; its slices follow each other, so all ranks of the chain work at once.
#include "src/collective/algorithms.h"

namespace catenary {

// root, root + 1, ..., root - 1.
Steps chain_broadcast(Place at) {
  const int next = at.after(1) == at.root ? kNobody : at.after(1);
  if (at.rank != at.root) {
    co_yield {.recv_from = at.after(-1), .dst = output(0), .send_to = next};
    co_return;
  }
  co_yield {.src = input(0), .dst = output(0), .send_to = next};
}

// root + 1, root + 2, ..., root.
Steps chain_reduce(Place at) {
  Step step{.src = input(0)};
  if (at.after(-1) != at.root) step.recv_from = at.after(-1);
  if (at.rank == at.root) {
    step.dst = output(0);
  } else {
    step.send_to = at.after(1);
  }
  co_yield step;
}

}  // namespace catenary
