#include "src/engine/plan.h"

#include <algorithm>
#include <set>

#include "src/base/error.h"

namespace catenary {
namespace {

class Compiler {
 public:
  Compiler(const Schedule& schedule, const std::vector<Lending>& lendings, int rank,
           Channel channel, bool scaled, LinkTable& links)
      : steps_(schedule.steps),
        lendings_(lendings),
        rank_(rank),
        channel_(channel),
        scaled_(scaled),
        links_(links) {
    plan_.chunk_count = schedule.chunk_count;
    fan_outs_ = fan_outs(schedule, [this](int peer) {
      Stage* const stage = peer != rank_ ? links_.send_link(peer, channel_).stage() : nullptr;
      return reinterpret_cast<std::uintptr_t>(stage);
    });
  }

  Plan compile() {
    find_own_messages();
    for (std::size_t i = 0; i < steps_.size();) {
      const Step& step = steps_[i];
      note_scratch(step);
      if (step.dst.buffer == Buffer::kCarry) {
        i = add_fold(i);
      } else if (own_messages_ && step.send_to == rank_) {
        ++i;  // read in place by the fold
      } else {
        add_step(i);
        ++i;
      }
    }
    find_what_is_returned();
    find_what_is_exchanged();
    find_what_is_for_good();
    find_what_is_sent_first();
    return std::move(plan_);
  }

 private:
  // Whether a message to ourselves can be dropped: it only sends input on, and a step of this same
  // schedule takes it. (A send to ourselves is taken by a receive of its own.)
  void find_own_messages() {
    const auto takes_own = [this](const Step& step) { return step.recv_from == rank_; };
    if (std::none_of(steps_.begin(), steps_.end(), takes_own)) return;
    for (const Step& step : steps_) {
      if (step.send_to != rank_) continue;
      const bool plain =
          !scaled_ && step.recv_from == kNobody && step.src.buffer == Buffer::kInput && !step.dst;
      if (!plain || own_input_) {
        own_messages_ = false;
        return;
      }
      own_input_ = step.src;
      own_messages_ = true;
    }
  }

  void find_what_is_returned() {
    std::set<std::pair<int, int>> asked_for;  // the peer, and the chunk of output
    bool comes_back = true;
    for (const PlannedStep& step : plan_.steps) {
      const Lending& lending = step.lending;
      if (lending.returned) {
        asked_for.emplace(step.send_to, lending.returned.index);
      } else if (lending.chunk.buffer == Buffer::kInput && lending.in_place) {
        comes_back = false;
      }
    }
    plan_.takes_nothing_back = !asked_for.empty() && comes_back;
    for (PlannedStep& step : plan_.steps) {
      step.is_returned = step.recv != nullptr && step.send == nullptr && !step.src &&
                         step.dst.buffer == Buffer::kOutput &&
                         asked_for.contains({step.recv_from, step.dst.index});
    }
  }

  void find_what_is_exchanged() {
    for (PlannedStep& step : plan_.steps) {
      if (step.lending.exchanged) step.exchanges_on = &links_.recv_link(step.send_to, channel_);
    }
    plan_.is_open_to_writers = std::ranges::any_of(plan_.steps, [](const PlannedStep& step) {
      return step.lending.returned || step.lending.exchanged;
    });
  }

  // From the end: what has been read by the steps that are behind us.
  void find_what_is_for_good() {
    std::set<int> read;
    const auto note = [&read](const Chunk& chunk) {
      if (chunk.buffer == Buffer::kOutput) read.insert(chunk.index);
    };
    for (auto step = plan_.steps.rbegin(); step != plan_.steps.rend(); ++step) {
      // A fold that sends reads what it has summed.
      const bool is_read_at_once = step->send != nullptr && step->fold_count > 0;
      step->for_good = step->dst.buffer == Buffer::kOutput && !is_read_at_once &&
                       !read.contains(step->dst.index);
      note(step->src);
      const auto first = plan_.fold_sources.begin() + step->fold_first;
      std::for_each(first, first + step->fold_count,
                    [&](const FoldSource& source) { note(source.own); });
    }
  }

  void find_what_is_sent_first() {
    const auto sends_input = [](const PlannedStep& step) {
      return step.send != nullptr && step.recv == nullptr && step.src.buffer == Buffer::kInput;
    };
    const auto first = std::ranges::find_if(plan_.steps, sends_input);
    if (first != plan_.steps.end()) plan_.sent_first = first->src;
  }

  void note_scratch(const Step& step) {
    for (const Chunk& chunk : {step.src, step.dst}) {
      if (chunk.buffer != Buffer::kScratch) continue;
      plan_.scratch_count = std::max(plan_.scratch_count, chunk.index + 1);
    }
  }

  Chunk part_of(const Chunk& chunk) const {
    return {chunk.buffer, chunk.index % plan_.chunk_count};
  }

  void add_step(std::size_t at) {
    const Step& step = steps_[at];
    if (own_messages_ && step.recv_from == rank_) {
      throw Error(ErrorCode::kInternal, "a schedule takes its own message outside of a fold");
    }
    PlannedStep planned;
    planned.src = step.src;
    planned.dst = step.dst;
    planned.extent = part_of(step.dst ? step.dst : step.src);
    planned.received_first = step.received_first;
    fill_recv(step.recv_from, planned);
    fill_send(at, planned);
    plan_.steps.push_back(planned);
  }

  // Steps from `at` up to the one that takes the sum out of the carry are one fold.
  std::size_t add_fold(std::size_t at) {
    PlannedStep planned;
    planned.fold_first = static_cast<int>(plan_.fold_sources.size());
    const Chunk carried = steps_[at].dst;
    planned.extent = part_of(carried);
    if (steps_[at].src) plan_.fold_sources.push_back({.own = steps_[at].src});
    for (bool first = true;; ++at, first = false) {
      if (at == steps_.size()) throw Error(ErrorCode::kInternal, "a schedule leaves a fold open");
      const Step& step = steps_[at];
      note_scratch(step);
      const bool well_formed = step.recv_from != kNobody && (first || step.src == carried);
      if (!well_formed)
        throw Error(ErrorCode::kInternal, "a schedule uses a carry outside of a fold");
      add_fold_source(step.recv_from);
      if (step.dst == carried) continue;
      planned.fold_count = static_cast<int>(plan_.fold_sources.size()) - planned.fold_first;
      planned.dst = step.dst;
      fill_send(at, planned);
      plan_.steps.push_back(planned);
      return at + 1;
    }
  }

  void add_fold_source(int peer) {
    if (own_messages_ && peer == rank_) {
      plan_.fold_sources.push_back({.own = own_input_});
      return;
    }
    plan_.fold_sources.push_back({.recv = &links_.recv_link(peer, channel_),
                                  .recv_from = peer,
                                  .opens_recv = opened_recv_.insert(peer).second});
  }

  void fill_recv(int peer, PlannedStep& planned) {
    if (peer == kNobody) return;
    planned.recv = &links_.recv_link(peer, channel_);
    planned.recv_from = peer;
    planned.opens_recv = opened_recv_.insert(peer).second;
  }

  void fill_send(std::size_t at, PlannedStep& planned) {
    const int peer = steps_[at].send_to;
    if (peer == kNobody) return;
    // Input that is scaled on the way is not what lies there.
    const Lending& lending = lendings_[at];
    if (!scaled_ || lending.chunk.buffer != Buffer::kInput) planned.lending = lending;
    planned.send = &links_.send_link(peer, channel_);
    planned.send_to = peer;
    planned.fan_out = fan_outs_[at].fan_out;
    planned.opens_send = opened_send_.insert(peer).second;
    if (planned.opens_send) plan_.sends.push_back({planned.send, peer});
  }

  const std::vector<Step>& steps_;
  const std::vector<Lending>& lendings_;
  std::vector<FanOutStep> fan_outs_;
  const int rank_;
  const Channel channel_;
  const bool scaled_;
  LinkTable& links_;
  Plan plan_;
  bool own_messages_ = false;
  Chunk own_input_ = {};
  std::set<int> opened_recv_;
  std::set<int> opened_send_;
};

}  // namespace

Plan compile(const Schedule& schedule, const std::vector<Lending>& lendings, int rank,
             Channel channel, bool scaled, LinkTable& links) {
  return Compiler(schedule, lendings, rank, channel, scaled, links).compile();
}

}  // namespace catenary
