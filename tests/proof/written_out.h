// Schedules written out, for tests that change some of their steps before they have them checked.
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "src/proof/checker.h"

namespace catenary::proof {

using Schedules = std::vector<Schedule>;

inline Steps steps_of(const Schedule* schedule) {
  for (const Step& step : schedule->steps) co_yield step;
}

// As much scratch as a test likes, where it does not say how much.
inline constexpr int kAnyScratch = std::numeric_limits<int>::max();

// Both must outlive what they are called for.
inline StepSource source_of(const Schedules& schedules, int most_scratch = kAnyScratch) {
  const auto of = [&schedules](const Place& at) {
    return &schedules[static_cast<std::size_t>(at.rank)];
  };
  return {[of](const Place& at) { return steps_of(of(at)); },
          [of](const Place& at) { return of(at)->chunk_count; },
          [most_scratch](const Place&) { return most_scratch; }};
}

inline Schedules written_out(const Algorithm& algorithm, const ProofCase& which) {
  const StepSource source = source_of(algorithm, which);
  Schedules schedules;
  for (int rank = 0; rank < which.ranks; ++rank) {
    const Place at = place_of(which, rank);
    schedules.push_back({.chunk_count = source.chunks(at), .steps = {}});
    for (const Step& step : source.steps(at)) schedules.back().add(step);
  }
  return schedules;
}

// What is wrong with them, or nothing.
inline std::string fault_of(const ProofCase& which, const Schedules& schedules) {
  Checker checker;
  Orders orders;
  return checker.check(which, source_of(schedules), orders).fault;
}

}  // namespace catenary::proof
