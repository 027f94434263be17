// How good the library's choices are: each point by every algorithm and by default, side by side.
#pragma once

#include <iterator>
#include <vector>

#include "src/collective/cost.h"
#include "src/collective/operation.h"

namespace catenary {

// If nothing is said.
inline constexpr Collective kReportedCollectives[] = {
    Collective::kAllReduce, Collective::kAllGather, Collective::kReduceScatter,
    Collective::kBroadcast, Collective::kReduce,    Collective::kAllToAll};
// If they are named.
inline constexpr Collective kOtherReportedCollectives[] = {Collective::kGather,
                                                           Collective::kScatter};

struct ReportOptions {
  std::vector<int> ranks = {2, 4, 8};
  Wire wire = Wire::kProcesses;
  bool mapped = false;
  std::vector<Collective> collectives = {std::begin(kReportedCollectives),
                                         std::end(kReportedCollectives)};
  int rounds = 12;       // at least
  bool verbose = false;  // print the times of all algorithms
};

// Prints a line a point and the share of points within 10 % of the best. The exit code: 0.
int print_report(const ReportOptions& options);

}  // namespace catenary
