// All-to-all in rounds: in round i every rank sends to the i-th after it and receives from the i-th
// before it, so what is in flight stays small enough for caches.
#include "src/collective/algorithms.h"

namespace catenary {

Steps pairwise_all_to_all(Place at) {
  co_yield {.src = input(at.rank), .dst = output(at.rank)};
  for (int i = 1; i < at.ranks; ++i) {
    co_yield {.src = input(at.after(i)), .send_to = at.after(i)};
    co_yield {.recv_from = at.after(-i), .dst = output(at.after(-i))};
  }
}

}  // namespace catenary
