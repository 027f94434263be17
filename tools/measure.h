// Measures collectives of this library on this machine: forks ranks, runs every variant of a point
// in turns, round after round, and takes the median, or a lower quantile, of the slowest rank's
// time.
//
// One burst is so many operations one after the other on a stream. Operations with a root take
// another one each time, going backward, so that no rank can run ahead of the others and what is
// measured is how long an operation takes, not how many can be started.
//
// Threads: the caller's process must not have used the library, since it forks. Waiting: until all
// is measured. Failure: throws Error with what a rank said.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "src/base/config.h"
#include "src/collective/cost.h"

namespace catenary {

struct Crew {
  int nranks = 2;
  Wire wire = Wire::kProcesses;
};

// One collective of one size, by each of some algorithms (a name of ours; empty: the library's
// choice).
struct Point {
  Collective collective = Collective::kAllReduce;
  std::size_t bytes = 0;  // of the longer buffer
  std::vector<std::string> variants;
};

struct Effort {
  int rounds = 9;
  double burst_ns = 1e6;
  // Which of the times counts: 0.5 is the median. Less is nearer to the truth where a machine has
  // other work, but further from what a user sees there.
  double quantile = 0.5;
};

// Nanoseconds of an operation, for each point and variant. `tell` hears of each point when it is
// done.
using Times = std::vector<std::vector<double>>;
Times measure(const Crew& crew, const std::vector<Point>& points, const Effort& effort,
              const Config& config, const std::function<void(std::size_t)>& tell);

// The facts that such a crew's communicators agree on.
MachineFacts facts_of(const Crew& crew);

}  // namespace catenary
