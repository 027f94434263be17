// The schedule of fewest hops: everything to everyone.
#include "src/collective/algorithms.h"
#include "src/collective/fold.h"

namespace catenary {

// Every rank reduces the messages of ranks 0, 1, ... in that order. Its own comes over a link to
// itself like all others, so all ranks run the same kernel on the same operands.
Steps one_shot_all_reduce(Place at) {
  for (int i = 1; i <= at.ranks; ++i) co_yield {.src = input(0), .send_to = at.after(i)};
  const Fold fold{.messages = at.ranks, .dst = output(0)};
  for (int peer = 0; peer < at.ranks; ++peer) co_yield fold.step(peer, peer);
}

}  // namespace catenary
