// The schedules of all ranks of a case under one window, written out once for all that goes through
// them again and again. For so few ranks that they fit into a cache: those of thousands do not.
//
// Keeps its memory from one case to the next. One thread at a time; nothing waits or fails.
#pragma once

#include <vector>

#include "src/collective/traffic.h"
#include "src/proof/proof_case.h"

namespace catenary::proof {

class WrittenSchedules {
 public:
  // Instead of what was written before. Of steps that have no end, one more than most_steps().
  void write(const Algorithm& algorithm, const ProofCase& which, int window);

  int window() const { return window_; }
  const Schedule& of(int rank) const { return schedules_[static_cast<std::size_t>(rank)]; }
  // Made when it is first asked for.
  const Traffic& traffic_of(int rank);
  // Gives these steps, and is good as long as they are.
  StepSource source() const;

 private:
  const Algorithm* algorithm_ = nullptr;
  int ranks_ = 0;
  int window_ = 1;
  std::vector<Schedule> schedules_;  // by rank, as is all that follows
  std::vector<Traffic> traffic_;
  std::vector<bool> has_traffic_;
};

}  // namespace catenary::proof
