#include "src/collective/traffic.h"

namespace catenary {

void Traffic::make(const Schedule& schedule, int ranks) {
  sort(schedule, ranks, &Step::send_to, sends_);
  sort(schedule, ranks, &Step::recv_from, receives_);
  sums_two_.clear();
  for (const Step& step : schedule.steps) {
    const bool is_of_fold = step.src.buffer == Buffer::kCarry || step.dst.buffer == Buffer::kCarry;
    sums_two_.push_back(step.recv_from != kNobody && step.src && !is_of_fold);
  }
}

// Counts first, so that each peer's steps have their place.
void Traffic::sort(const Schedule& schedule, int ranks, int Step::*peer, ByPeer& sorted) {
  std::vector<std::uint32_t>& begins = sorted.begins;
  begins.assign(static_cast<std::size_t>(ranks) + 2, 0);
  for (const Step& step : schedule.steps) {
    if (step.*peer != kNobody) ++begins[static_cast<std::size_t>(step.*peer) + 2];
  }
  for (std::size_t i = 2; i < begins.size(); ++i) begins[i] += begins[i - 1];
  sorted.steps.resize(begins.back());
  // Where a peer's next step goes; in the end that is where the next peer's begin.
  for (std::uint32_t i = 0; i < schedule.steps.size(); ++i) {
    const int with = schedule.steps[i].*peer;
    if (with != kNobody) sorted.steps[begins[static_cast<std::size_t>(with) + 1]++] = i;
  }
}

}  // namespace catenary
