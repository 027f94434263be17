// The schedule of fewest hops: everything to everyone.
#include "src/collective/algorithms.h"
#include "src/collective/steps.h"

namespace catenary {

// Every rank reduces the messages of ranks 0, 1, ... in that order. Its own comes over a link to
// itself like all others, so all ranks run the same kernel on the same operands.
Schedule one_shot_all_reduce(int rank, int nranks, int /*root*/) {
  if (nranks == 1) return schedule_of_one();
  Schedule schedule;
  schedule.steps.reserve(2 * static_cast<std::size_t>(nranks));
  for (int i = 1; i <= nranks; ++i) {
    schedule.add({.src = input(0), .send_to = rank_after(rank, i, nranks)});
  }
  add_fold(schedule, {}, 0, nranks, nranks, 0, output(0));
  return schedule;
}

}  // namespace catenary
