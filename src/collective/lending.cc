#include "src/collective/lending.h"

#include <algorithm>
#include <map>
#include <optional>

namespace catenary {
namespace {

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
  Analysis(Collective collective, const Place& at, const Schedule& mine,
           const TrafficOf& traffic_of)
      : collective_(twin_of(collective)), at_(at), mine_(mine), traffic_of_(traffic_of) {}

  Lending of(std::size_t step_index) {
    Lending lending = lent_of(step_index);
    if (lending.chunk) lending.returned = returned_to(step_index);
    if (lending.chunk) lending.exchanged = exchanged_for(step_index);
    return lending;
  }

 private:
  Lending lent_of(std::size_t step_index) {
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

  // The peer sends in the step that takes our message, which sums the two, and what it sends we
  // only keep.
  Chunk returned_to(std::size_t sent_at) {
    if (at_.ranks > kMostRanksInPlace) return {};
    const int peer = mine_.steps[sent_at].send_to;
    const auto receives = mine_by_peer().receives_from(peer);
    if (receives.empty()) return {};
    const Traffic& theirs = traffic_of_(peer);
    const std::optional<std::uint32_t> taken_at = taken_by(theirs, sent_at);
    if (!taken_at || !theirs.sums_two(*taken_at)) return {};
    const auto they_send = theirs.sends_to(at_.rank);
    const auto answer = std::ranges::lower_bound(they_send, *taken_at);
    if (answer == they_send.end() || *answer != *taken_at) return {};
    const auto answer_number = static_cast<std::size_t>(answer - they_send.begin());
    if (answer_number >= receives.size()) return {};
    const std::size_t kept_at = receives[answer_number];
    const Step& keeps = mine_.steps[kept_at];
    const bool is_only_kept =
        keeps.dst.buffer == Buffer::kOutput && !keeps.src && keeps.send_to == kNobody;
    if (!is_only_kept || kept_at < sent_at || is_read_by_others(keeps.dst, sent_at)) return {};
    return keeps.dst;
  }

  // All that we do is to hand on what we keep, and to keep what comes back. That the peer does so,
  // too, is seen from what it lends.
  Chunk exchanged_for(std::size_t sent_at) const {
    if (mine_.steps.size() != 2 || sent_at != 0) return {};
    const Step& gives = mine_.steps[0];
    const Step& takes = mine_.steps[1];
    const bool hands_on = gives.recv_from == kNobody && gives.src.buffer == Buffer::kInput &&
                          gives.dst.buffer == Buffer::kOutput;
    const bool keeps = takes.recv_from == gives.send_to && takes.send_to == kNobody && !takes.src &&
                       takes.dst.buffer == Buffer::kOutput;
    return hands_on && keeps ? takes.dst : Chunk{};
  }

  // Whether a step other than that one reads what lies there when the operation begins, if it works
  // in place.
  bool is_read_by_others(const Chunk& there, std::size_t but) const {
    for (std::size_t i = 0; i < mine_.steps.size(); ++i) {
      const Chunk& src = mine_.steps[i].src;
      if (i != but && src.buffer == Buffer::kInput && over(collective_, at_, src) == there)
        return true;
    }
    return false;
  }

  // The step of the peer, whose traffic that is, which takes what we send in a step.
  std::optional<std::uint32_t> taken_by(const Traffic& theirs, std::size_t sent_at) {
    const auto sends = mine_by_peer().sends_to(mine_.steps[sent_at].send_to);
    const auto number = std::ranges::lower_bound(sends, sent_at) - sends.begin();
    const auto they_receive = theirs.receives_from(at_.rank);
    if (number >= std::ssize(they_receive)) return std::nullopt;
    return they_receive[static_cast<std::size_t>(number)];
  }

  const Traffic& mine_by_peer() {
    if (!mine_by_peer_) mine_by_peer_.emplace(mine_, at_.ranks);
    return *mine_by_peer_;
  }

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
    const auto index = static_cast<std::size_t>(target.index);
    if (index >= writers_.size() || writers_[index] == kNever ||
        changes_nothing(mine_.steps[writers_[index]], given)) {
      return std::nullopt;
    }
    return writers_[index];
  }

  void find_writers() {
    for (std::size_t i = 0; i < mine_.steps.size(); ++i) {
      const Chunk& dst = mine_.steps[i].dst;
      if (dst.buffer != Buffer::kOutput) continue;
      const auto index = static_cast<std::size_t>(dst.index);
      if (index >= writers_.size()) writers_.resize(index + 1, kNever);
      writers_[index] = std::min(writers_[index], i);
    }
  }

  // What the peer sent us last, of what we have received up to the end of step `end`, it sent in
  // the step that takes our message or later.
  bool was_taken_before(std::size_t lent_at, std::size_t end) {
    const int peer = mine_.steps[lent_at].send_to;
    const auto receives = mine_by_peer().receives_from(peer);
    const auto received = std::ranges::upper_bound(receives, end) - receives.begin();
    if (received == 0) return false;
    const Traffic& theirs = traffic_of_(peer);
    const std::optional<std::uint32_t> taken_at = taken_by(theirs, lent_at);
    const auto they_send = theirs.sends_to(at_.rank);
    if (!taken_at || received > std::ssize(they_send)) return false;
    return *taken_at <= they_send[static_cast<std::size_t>(received - 1)];
  }

  static constexpr std::size_t kNever = SIZE_MAX;

  const Collective collective_;
  const Place at_;
  const Schedule& mine_;
  const TrafficOf& traffic_of_;
  std::vector<std::size_t> writers_;  // by chunk of output
  std::optional<Traffic> mine_by_peer_;
};

}  // namespace

std::vector<Lending> lendings(const Algorithm& algorithm, const Place& at, const Schedule& mine) {
  std::map<int, Traffic> known;  // of peers
  return lendings(algorithm, at, mine, [&](int peer) -> const Traffic& {
    const auto [of_peer, is_new] = known.try_emplace(peer);
    Place there = at;
    there.rank = peer;
    if (is_new) of_peer->second.make(schedule_of(algorithm, there), at.ranks);
    return of_peer->second;
  });
}

std::vector<Lending> lendings(const Algorithm& algorithm, const Place& at, const Schedule& mine,
                              const TrafficOf& traffic_of) {
  std::vector<Lending> result;
  result.reserve(mine.steps.size());
  if (is_point_to_point(algorithm.collective)) {
    // Their input and output belong to different operations.
    for (const Step& step : mine.steps) {
      result.push_back(step.send_to == kNobody ? Lending{} : Lending{step.src, true});
    }
    return result;
  }
  Analysis analysis(algorithm.collective, at, mine, traffic_of);
  for (std::size_t i = 0; i < mine.steps.size(); ++i) result.push_back(analysis.of(i));
  return result;
}

}  // namespace catenary
