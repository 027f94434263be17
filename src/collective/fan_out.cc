#include "src/collective/fan_out.h"

#include <algorithm>
#include <map>
#include <set>

namespace catenary {
namespace {

// Whether it sends what lay there before, and keeps nothing else. Scratch may be written again.
bool sends_as_it_is(const Step& step) {
  const bool stays = step.src.buffer == Buffer::kInput || step.src.buffer == Buffer::kOutput;
  const bool is_kept_apart = !step.dst || step.dst.buffer == Buffer::kOutput;
  return step.recv_from == kNobody && stays && is_kept_apart;
}

class Finder {
 public:
  Finder(const Schedule& schedule, const PlaceOf& place_of)
      : steps_(schedule.steps), place_of_(place_of), found_(steps_.size()) {}

  std::vector<FanOutStep> find() {
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      const Step& step = steps_[i];
      if (step.send_to == kNobody) continue;
      if (!sends_as_it_is(step) || step.src != sent_) finish_run();
      if (!sends_as_it_is(step)) continue;
      sent_ = step.src;
      run_.push_back(i);
    }
    finish_run();
    return std::move(found_);
  }

 private:
  using Run = std::vector<std::size_t>;  // steps that send the same

  void finish_run() {
    if (run_.size() >= kLeastFannedOut) note(longest_of_one_place());
    run_.clear();
    sent_ = {};
  }

  Run longest_of_one_place() const {
    std::map<std::uintptr_t, Run> places;
    for (const std::size_t i : run_) {
      const std::uintptr_t place = place_of_(steps_[i].send_to);
      if (place != kNowhere) places[place].push_back(i);
    }
    Run longest;
    for (auto& [place, steps] : places) {
      if (steps.size() > longest.size()) longest = std::move(steps);
    }
    return longest;
  }

  void note(const Run& run) {
    if (run.size() < kLeastFannedOut || run.size() > kMostFannedOut) return;
    const bool comes_back = std::ranges::any_of(
        run, [this](std::size_t i) { return senders().contains(steps_[i].send_to); });
    if (comes_back && run.size() < kLeastExchanged) return;
    const FanOut kind = comes_back ? FanOut::kExchanged : FanOut::kOneWay;
    for (const std::size_t i : run) found_[i] = {kind, i == run.front()};
  }

  const std::set<int>& senders() {
    if (senders_.empty()) {
      for (const Step& step : steps_) senders_.insert(step.recv_from);
    }
    return senders_;
  }

  const std::vector<Step>& steps_;
  const PlaceOf& place_of_;
  std::vector<FanOutStep> found_;
  Run run_;
  Chunk sent_ = {};  // by the steps of the run
  std::set<int> senders_;
};

}  // namespace

std::vector<FanOutStep> fan_outs(const Schedule& schedule, const PlaceOf& place_of) {
  return Finder(schedule, place_of).find();
}

}  // namespace catenary
