// All-to-all in rounds: in round i every rank sends to the i-th after it and receives from the i-th
// before it, so what is in flight stays small enough for caches.
#include "src/collective/algorithms.h"
#include "src/collective/steps.h"

namespace catenary {

Schedule pairwise_all_to_all(int rank, int nranks, int /*root*/) {
  Schedule schedule{.chunk_count = nranks, .steps = {}};
  schedule.steps.reserve(2 * static_cast<std::size_t>(nranks));
  schedule.add({.src = input(rank), .dst = output(rank)});
  for (int i = 1; i < nranks; ++i) {
    const int to = rank_after(rank, i, nranks);
    const int from = rank_after(rank, -i, nranks);
    schedule.add({.src = input(to), .send_to = to});
    schedule.add({.recv_from = from, .dst = output(from)});
  }
  return schedule;
}

}  // namespace catenary
