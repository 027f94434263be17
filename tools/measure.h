// Measures collectives of this library on this machine: forks ranks, runs every variant of a point
// in turns, round after round, and takes the median, or a lower quantile, of the slowest rank's
// time.
//
// One burst is so many operations one after the other on a stream, after a few that warm the caches
// up. Operations with a root take another one each time, going backward, so that no rank can run
// ahead of the others and what is measured is how long an operation takes, not how many can be
// started. Before a variant is measured, it runs until its links are warm.
//
// Threads: the caller's process must not have used the library, since it forks. Waiting: until all
// is measured. Failure: throws Error with what a rank said.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "src/base/config.h"
#include "src/collective/cost.h"

namespace catenary {

inline constexpr int kMostRanks = 64;

struct Crew {
  int nranks = 2;  // at most kMostRanks
  Wire wire = Wire::kProcesses;
  bool mapped = false;  // buffers are the library's, which peers can reach, and not private
};

// One collective of one size, by each of some algorithms (a name of ours; empty: the library's
// choice).
struct Point {
  Collective collective = Collective::kAllReduce;
  std::size_t bytes = 0;  // of the longer buffer
  std::vector<std::string> variants;
  // Where there is one, it is held against the others, which decides how many rounds it takes.
  std::optional<std::size_t> judged = {};
};

// Where a variant is judged, rounds go on until it is clear whether it is within `close` of the
// best, or there were `most_rounds`, or the point has taken `point_ns`. Meanwhile algorithms that
// are far from the best fall out of the running. Then the judged one, the two best of the others
// and the library's choice are measured once more, and that is what counts: the best of many is
// partly the one that was lucky. Elsewhere there are `least_rounds`.
struct Effort {
  int least_rounds = 12;
  int most_rounds = 60;
  double close = 1.1;
  double point_ns = 1e9;
  double burst_ns = 1e6;
  // Which of the times counts: 0.5 is the median. Less is nearer to the truth where a machine has
  // other work, but further from what a user sees there.
  double quantile = 0.5;
};

struct Timing {
  double ns = 0;         // of an operation
  double spread = 0;     // between the quartiles, as a part of the median
  bool is_best = false;  // of the algorithms, where one is judged
};
// For each point and variant. `tell` hears of each point when it is done.
using Times = std::vector<std::vector<Timing>>;
Times measure(const Crew& crew, const std::vector<Point>& points, const Effort& effort,
              const Config& config, const std::function<void(std::size_t)>& tell);

// Ranks for each core, or 1: bursts and points take so many times as long, since each burst begins
// with a time until all ranks have a core.
double crowding(const Crew& crew);

// The facts that such a crew's communicators agree on.
MachineFacts facts_of(const Crew& crew);

}  // namespace catenary
