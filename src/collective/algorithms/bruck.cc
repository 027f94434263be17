// Bruck's schedules (1997): logarithmically many rounds for any number of ranks, all going round
// the circle in one direction. Since every chunk has a number, nothing is rotated in memory.
#include <algorithm>

#include "src/collective/algorithms.h"
#include "src/collective/algorithms/exchange.h"

namespace catenary {

// Before a round a rank has the parts of itself and the ranks after it, `known` in all; the rank so
// far ahead has the next ones.
Steps bruck_all_gather(Place at) {
  co_yield {.src = input(0), .dst = output(at.rank)};
  for (int known = 1; known < at.ranks; known *= 2) {
    const int count = std::min(known, at.ranks - known);
    const auto give = [&](int i) {
      return Step{.src = output(at.after(i)), .send_to = at.after(-known)};
    };
    const auto take = [&](int i) {
      return Step{.recv_from = at.after(known), .dst = output(at.after(known + i))};
    };
    for (const Step& step : exchange(at.window, count, count, give, take)) co_yield step;
  }
}

// A chunk that has `way` ranks to go makes one hop for each bit of that number, the shortest first.
// At all ranks chunks of one way move at a time: each leaves, and another takes its place. All of
// them begin in scratch, since what has arrived may lie where input was.
Steps bruck_all_to_all(Place at) {
  for (int way = 1; way < at.ranks; ++way) {
    co_yield {.src = input(at.after(way)), .dst = scratch(way)};
  }
  co_yield {.src = input(at.rank), .dst = output(at.rank)};
  for (int hop = 1; hop < at.ranks; hop *= 2) {
    // The i-th number that has the hop's bit: as many have it as not, `hop` of them at a time, so
    // that many are skipped before it: i & -hop is i but for its place among those.
    const auto way = [&](int i) { return i + (i & -hop) + hop; };
    int count = 0;
    while (way(count) < at.ranks) ++count;
    const auto give = [&](int i) { return Step{.src = scratch(way(i)), .send_to = at.after(hop)}; };
    const auto take = [&](int i) {
      const bool is_last_hop = way(i) < 2 * hop;
      return Step{.recv_from = at.after(-hop),
                  .dst = is_last_hop ? output(at.after(-way(i))) : scratch(way(i))};
    };
    for (const Step& step : exchange(at.window, count, count, give, take)) co_yield step;
  }
}

}  // namespace catenary
