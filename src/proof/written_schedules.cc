#include "src/proof/written_schedules.h"

namespace catenary::proof {
namespace {

// A reference, since what is written outlives who goes through it.
Steps steps_in(const std::vector<Step>& steps) {
  for (const Step& step : steps) co_yield step;
}

}  // namespace

void WrittenSchedules::write(const Algorithm& algorithm, const ProofCase& which, int window) {
  algorithm_ = &algorithm;
  ranks_ = which.ranks;
  window_ = window;
  const auto ranks = static_cast<std::size_t>(which.ranks);
  has_traffic_.assign(ranks, false);
  if (schedules_.size() < ranks) {
    schedules_.resize(ranks);
    traffic_.resize(ranks);
  }
  const StepSource source = source_with(algorithm, which, window);
  for (int rank = 0; rank < which.ranks; ++rank) {
    const Place at = place_of(which, rank);
    Schedule& schedule = schedules_[static_cast<std::size_t>(rank)];
    schedule.chunk_count = source.chunks(at);
    schedule.steps.clear();
    const std::size_t most = most_steps(which, schedule.chunk_count);
    for (const Step& step : source.steps(at)) {
      schedule.add(step);
      if (schedule.steps.size() > most) break;
    }
  }
}

const Traffic& WrittenSchedules::traffic_of(int rank) {
  const auto at = static_cast<std::size_t>(rank);
  if (!has_traffic_[at]) traffic_[at].make(schedules_[at], ranks_);
  has_traffic_[at] = true;
  return traffic_[at];
}

StepSource WrittenSchedules::source() const {
  return {[this](const Place& at) { return steps_in(of(at.rank).steps); },
          [this](const Place& at) { return of(at.rank).chunk_count; },
          [this](Place at) {
            at.window = window_;
            return algorithm_->scratch(at);
          }};
}

}  // namespace catenary::proof
