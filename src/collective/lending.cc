#include "src/collective/lending.h"

#include <map>
#include <optional>

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

  std::optional<std::size_t> overwritten_at(const Chunk& given) const {
    const Chunk target = over(collective_, at_, given);
    for (std::size_t i = 0; i < mine_.steps.size(); ++i) {
      if (mine_.steps[i].dst == target && target && !changes_nothing(mine_.steps[i], given))
        return i;
    }
    return std::nullopt;
  }

  // What the peer sent us last, of what we have received up to the end of step `end`, it sent in
  // the step that takes our message or later.
  bool was_taken_before(std::size_t lent_at, std::size_t end) {
    const int peer = mine_.steps[lent_at].send_to;
    int sent_before = 0;
    for (std::size_t i = 0; i < lent_at; ++i) sent_before += mine_.steps[i].send_to == peer;
    int received = 0;
    for (std::size_t i = 0; i <= end; ++i) received += mine_.steps[i].recv_from == peer;
    bool taken = false;
    for (const Step& step : schedule_of_peer(peer).steps) {
      if (step.recv_from == at_.rank && sent_before-- == 0) taken = true;
      if (step.send_to == at_.rank && --received == 0) return taken;
    }
    return false;
  }

  const Schedule& schedule_of_peer(int peer) {
    const auto known = peers_.find(peer);
    if (known != peers_.end()) return known->second;
    Place there = at_;
    there.rank = peer;
    return peers_.emplace(peer, schedule_of(algorithm_, there)).first->second;
  }

  const Algorithm& algorithm_;
  const Collective collective_;
  const Place at_;
  const Schedule& mine_;
  std::map<int, Schedule> peers_;
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
