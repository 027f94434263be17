#include "src/collective/lending.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

namespace catenary {
namespace {

// Beyond, working out what is safe in place would cost more than it gives.
constexpr int kMostRanksInPlace = 64;

// The chunk of output that lies where a chunk of input does, when a collective works in place.
Chunk over(Collective collective, const Place& at, const Chunk& given) {
  switch (collective) {
    case Collective::kAllGather:
    case Collective::kGather: return output(at.rank);
    case Collective::kReduceScatter:
    case Collective::kScatter: return given.index == at.rank ? output(0) : Chunk{};
    default: return output(given.index);
  }
}

// In place, a copy of what lies there already.
bool changes_nothing(const Step& step, const Chunk& given) {
  return step.recv_from == kNobody && step.src == given;
}

class Analysis {
 public:
  Analysis(const Algorithm& algorithm, const Place& at, const Schedule& mine)
      : algorithm_(algorithm), collective_(twin_of(algorithm.collective)), at_(at), mine_(mine) {}

  Lending of(std::size_t step_index) {
    const Step& step = mine_.steps[step_index];
    if (step.send_to == kNobody || step.send_to == at_.rank) return {};
    const bool hands_on = step.recv_from == kNobody && step.src.buffer == Buffer::kInput;
    if (hands_on && step.dst && is_safe_in_place(step_index)) return {step.src, true};
    if (step.dst.buffer == Buffer::kOutput) return {step.dst, true};
    if (step.recv_from != kNobody || step.dst) return {};
    if (step.src.buffer == Buffer::kOutput) return {step.src, true};
    if (step.src.buffer != Buffer::kInput) return {};
    return {step.src, is_safe_in_place(step_index)};
  }

 private:
  bool is_safe_in_place(std::size_t lent_at) {
    const Chunk given = mine_.steps[lent_at].src;
    const std::optional<std::size_t> overwritten = overwritten_at(given);
    if (!overwritten) return true;
    return at_.ranks <= kMostRanksInPlace && was_taken_before(lent_at, *overwritten);
  }

  // Output is written once, so there is one step at most.
  std::optional<std::size_t> overwritten_at(const Chunk& given) {
    const Chunk target = over(collective_, at_, given);
    if (!target) return std::nullopt;
    if (writers_.empty()) find_writers();
    const auto writer = writers_.find(target.index);
    if (writer == writers_.end() || changes_nothing(mine_.steps[writer->second], given))
      return std::nullopt;
    return writer->second;
  }

  void find_writers() {
    for (std::size_t i = 0; i < mine_.steps.size(); ++i) {
      const Chunk& dst = mine_.steps[i].dst;
      if (dst.buffer == Buffer::kOutput) writers_.emplace(dst.index, i);
    }
  }

  // What the peer sent us last, of what we have received up to the end of step `end`, it sent in
  // the step that takes our message or later.
  bool was_taken_before(std::size_t lent_at, std::size_t end) {
    const auto& [mine, theirs] = traffic_with(mine_.steps[lent_at].send_to);
    const auto number = std::ranges::lower_bound(mine.sends, lent_at) - mine.sends.begin();
    const auto received = std::ranges::upper_bound(mine.receives, end) - mine.receives.begin();
    if (received == 0) return false;
    const auto taken = static_cast<std::size_t>(number);
    const auto last = static_cast<std::size_t>(received - 1);
    return taken < theirs.receives.size() && last < theirs.sends.size() &&
           theirs.receives[taken] <= theirs.sends[last];
  }

  // The steps of a schedule that deal with one peer.
  struct Traffic {
    std::vector<std::size_t> sends;
    std::vector<std::size_t> receives;
  };
  static Traffic traffic_of(const Schedule& schedule, int peer) {
    Traffic traffic;
    for (std::size_t i = 0; i < schedule.steps.size(); ++i) {
      if (schedule.steps[i].send_to == peer) traffic.sends.push_back(i);
      if (schedule.steps[i].recv_from == peer) traffic.receives.push_back(i);
    }
    return traffic;
  }

  // Ours with the peer, and the peer's with us.
  const std::pair<Traffic, Traffic>& traffic_with(int peer) {
    const auto known = traffic_.find(peer);
    if (known != traffic_.end()) return known->second;
    Place there = at_;
    there.rank = peer;
    const Traffic theirs = traffic_of(schedule_of(algorithm_, there), at_.rank);
    return traffic_.emplace(peer, std::pair(traffic_of(mine_, peer), theirs)).first->second;
  }

  const Algorithm& algorithm_;
  const Collective collective_;
  const Place at_;
  const Schedule& mine_;
  std::map<int, std::size_t> writers_;  // by chunk of output
  std::map<int, std::pair<Traffic, Traffic>> traffic_;
};

}  // namespace

std::vector<Lending> lendings(const Algorithm& algorithm, const Place& at, const Schedule& mine) {
  std::vector<Lending> result;
  if (is_point_to_point(algorithm.collective)) {
    // Their input and output belong to different operations.
    for (const Step& step : mine.steps) {
      result.push_back(step.send_to == kNobody ? Lending{} : Lending{step.src, true});
    }
    return result;
  }
  Analysis analysis(algorithm, at, mine);
  for (std::size_t i = 0; i < mine.steps.size(); ++i) result.push_back(analysis.of(i));
  return result;
}

}  // namespace catenary
