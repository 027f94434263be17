// All-to-all in rounds: in round i rank r exchanges with rank i - r, for which it is the same, so
// what is in flight stays small enough for caches, and each part is sent before another comes in
// its place. Of an odd number of ranks one copies its own part in each round.
#include "src/collective/algorithms.h"

namespace catenary {

Steps pairwise_all_to_all(Place at) {
  for (int round = 0; round < at.ranks; ++round) {
    const int peer = (round - at.rank + at.ranks) % at.ranks;
    if (peer == at.rank) {
      co_yield {.src = input(at.rank), .dst = output(at.rank)};
      continue;
    }
    co_yield {.src = input(peer), .send_to = peer};
    co_yield {.recv_from = peer, .dst = output(peer)};
  }
}

}  // namespace catenary
