// The part of Shape that walks: the schedules of all ranks, run side by side on paper.
#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "src/base/error.h"
#include "src/collective/fan_out.h"
#include "src/collective/shape.h"

namespace catenary {
namespace {

// What things weigh while a path is sought.
struct Weights {
  double hop;
  double message;
  double chunk;
  double spared = 0;  // of a chunk, if it need not be copied: where all else is long, too
};
constexpr std::array kWeights = {Weights{1, 1e-4, 1e-5}, Weights{1e-3, 0.01, 1, 1},
                                 Weights{1, 0.3, 0.5}};
static_assert(kWeights.size() == std::tuple_size_v<decltype(Shape::paths)>);

// How much more the same weighs on a way out of the box: else a path that stays inside is taken for
// one that is as long as its hops say.
constexpr Weights kFar = {20, 5, 3};

// A chunk of a rank's own memory weighs so much of one on a wire. It need not be fetched from
// another core; but with nothing, a root's own copy would be no work.
constexpr double kOwn = 0.25;

constexpr std::size_t kPaths = kWeights.size();

double weigh(const Work& work, const Weights& weights) {
  return weights.hop * (work.hops[0] + kFar.hop * work.hops[1]) +
         weights.message * (work.steps + work.messages[0] + kFar.message * work.messages[1]) +
         weights.chunk * (work.wired[0] + kFar.chunk * work.wired[1] + kOwn * work.local +
                          work.reduced - weights.spared * (work.fanned_out + work.exchanged));
}

Work hop(Reach reach) {
  Work work;
  work.hops[static_cast<int>(reach)] = 1;
  return work;
}

constexpr int kNone = -1;
using Weight = std::array<double, kPaths>;

Weight weigh(const Work& work) {
  Weight weight;
  for (std::size_t i = 0; i < kPaths; ++i) weight[i] = weigh(work, kWeights[i]);
  return weight;
}

// A step that was done. For each of the weights, the heaviest path that ends with it: what it
// weighs, and the step before on it.
struct Event {
  int lane;
  std::array<int, kPaths> before;
  Weight weight;
};

// Messages that nobody has taken yet, on all links, in the order sent on each: the events that sent
// them.
class Messages {
 public:
  Messages(std::size_t links, std::size_t events) : links_(links), next_(events, kNone) {}

  void send(std::size_t link, int event) {
    Link& into = links_[link];
    (into.last == kNone ? into.first : next_[static_cast<std::size_t>(into.last)]) = event;
    into.last = event;
  }
  // The oldest on a link, or kNone.
  int take(std::size_t link) {
    Link& from = links_[link];
    const int event = from.first;
    if (event == kNone) return kNone;
    from.first = next_[static_cast<std::size_t>(event)];
    if (from.first == kNone) from.last = kNone;
    return event;
  }

 private:
  struct Link {
    int first = kNone;
    int last = kNone;
  };
  std::vector<Link> links_;
  std::vector<int> next_;  // by event: the message behind it on its link
};

// Runs the schedules of all ranks side by side, with messages that take no room.
class Walker {
 public:
  Walker(const Algorithm& algorithm, const Place& all)
      : nranks_(all.ranks), box_(all.box), ranks_(static_cast<std::size_t>(all.ranks)) {
    shape_.lanes = algorithm.lanes;
    for (int rank = 0; rank < nranks_; ++rank) {
      for (int lane = 0; lane < shape_.lanes; ++lane) {
        Place at = all;
        at.rank = rank;
        at.lane = lane;
        add_lane(algorithm, at);
      }
    }
    for (const Reach reach : {Reach::kBox, Reach::kFar}) {
      hop_weights_[static_cast<std::size_t>(reach)] = weigh(hop(reach));
    }
    weights_.resize(steps_);
    const auto links = static_cast<std::size_t>(nranks_ * nranks_ * shape_.lanes);
    links_used_.resize(links);
    events_.resize(2 * steps_);
    messages_.emplace(links, events_.size());
  }

  Shape run(bool twice) {
    run_pass();
    summarize();
    shape_.paths = longest_paths();
    if (!twice) return shape_;
    first_event_ = steps_;
    run_pass();
    shape_.two_passes = longest_paths();
    return shape_;
  }

 private:
  struct Rank {
    int last = kNone;  // event
    Work done;
    int waits = 0;
    int sends_to = 0;  // links
  };
  struct Lane {
    int rank;
    int lane;
    Schedule schedule;
    std::vector<FanOutStep> fan_outs;
    std::size_t first_step;  // among those of all lanes
    std::size_t next = 0;
  };

  void run_pass() {
    for (Lane& lane : lanes_) lane.next = 0;
    for (bool moved = true; moved;) {
      moved = false;
      for (Lane& lane : lanes_) {
        while (lane.next < lane.schedule.steps.size() && try_step(lane)) moved = true;
      }
    }
    for (const Lane& lane : lanes_) {
      if (lane.next == lane.schedule.steps.size()) continue;
      throw_error(ErrorCode::kInternal, "a schedule of %d ranks waits for ever at rank %d", nranks_,
                  lane.rank);
    }
  }

  void add_lane(const Algorithm& algorithm, Place at) {
    // The two ends of point-to-point are two collectives; rank 0 sends to rank 1.
    const Algorithm* run = &algorithm;
    if (is_point_to_point(algorithm.collective)) {
      at.root = 1 - at.rank;
      const Collective kind = at.rank == 0 ? Collective::kSend : Collective::kRecv;
      run = find_algorithm(kind, algorithm.name);
    }
    Schedule schedule = schedule_of(*run, at);
    std::vector<FanOutStep> found = fan_outs(schedule, [&](int peer) {
      const bool reads = peer != at.rank && reach(at.rank, peer) == Reach::kBox;
      return reads ? std::uintptr_t{1} : kNowhere;
    });
    lanes_.push_back({at.rank, at.lane, std::move(schedule), std::move(found), steps_});
    steps_ += lanes_.back().schedule.steps.size();
    shape_.chunk_count = lanes_.back().schedule.chunk_count;
  }

  Reach reach(int a, int b) const { return a / box_ == b / box_ ? Reach::kBox : Reach::kFar; }

  std::size_t link(int from, int to, int lane) const {
    return static_cast<std::size_t>((from * nranks_ + to) * shape_.lanes + lane);
  }

  Event& event(int id) { return events_[static_cast<std::size_t>(id)]; }
  const Lane& lane_of(int id) const {
    return lanes_[static_cast<std::size_t>(events_[static_cast<std::size_t>(id)].lane)];
  }
  // Does the next step if its message is there.
  bool try_step(Lane& lane) {
    const Step& step = lane.schedule.steps[lane.next];
    Rank& rank = ranks_[static_cast<std::size_t>(lane.rank)];
    int message = kNone;
    if (step.recv_from != kNobody) {
      message = messages_->take(link(step.recv_from, lane.rank, lane.lane));
      if (message == kNone) return false;
    }
    const auto id = static_cast<int>(first_event_ + lane.first_step + lane.next);
    event(id).lane = static_cast<int>(&lane - lanes_.data());
    Weight& weight = weights_[lane.first_step + lane.next];
    if (first_event_ == 0) {
      const Work work = work_of(lane, lane.next);
      weight = weigh(work);
      rank.done += work;
    }
    follow(rank, lane.rank, message, event(id));
    for (std::size_t i = 0; i < kPaths; ++i) event(id).weight[i] += weight[i];
    rank.last = id;
    if (step.send_to != kNobody) {
      const std::size_t to = link(lane.rank, step.send_to, lane.lane);
      messages_->send(to, id);
      if (step.send_to != lane.rank && !links_used_[to]) {
        links_used_[to] = true;
        ++rank.sends_to;
      }
    }
    ++lane.next;
    return true;
  }

  // What came before an event is the rank's last one, or the message's, whichever weighs more. If
  // that is the message's, by hops as they weigh, the rank had to wait.
  void follow(Rank& rank, int number, int message, Event& into) {
    into.before.fill(rank.last);
    into.weight.fill(0);
    if (rank.last != kNone) into.weight = event(rank.last).weight;
    if (message == kNone) return;
    const int from = lane_of(message).rank;
    constexpr Weight kNoWay = {};
    const Weight& way =
        from == number ? kNoWay : hop_weights_[static_cast<std::size_t>(reach(from, number))];
    for (std::size_t i = 0; i < kPaths; ++i) {
      const double weight = event(message).weight[i] + way[i];
      if (weight <= into.weight[i]) continue;
      into.weight[i] = weight;
      into.before[i] = message;
      if (i == 0) ++rank.waits;
    }
  }

  // All that is done on the heaviest path to an event.
  Work work_on_path(int last, std::size_t weights) {
    Work work;
    for (int id = last; id != kNone;) {
      const Lane& lane = lane_of(id);
      const std::size_t step = static_cast<std::size_t>(id) % steps_ - lane.first_step;
      work += work_of(lane, step);
      const int before = event(id).before[weights];
      const int from = before == kNone ? lane.rank : lane_of(before).rank;
      if (from != lane.rank) work += hop(reach(from, lane.rank));
      id = before;
    }
    return work;
  }

  // As the engine does it: a fold is one step, and a message to oneself that only carries input is
  // read in place.
  Work work_of(const Lane& lane, std::size_t number) const {
    const Step& step = lane.schedule.steps[number];
    const int rank = lane.rank;
    Work work;
    work.steps = step.dst.buffer == Buffer::kCarry || step.send_to == rank ? 0 : 1;
    int operands = 0;
    for (const int peer : {step.recv_from, step.send_to}) {
      if (peer == kNobody || peer == rank) continue;
      const int index = static_cast<int>(reach(rank, peer));
      work.messages[index] += 1;
      work.wired[index] += 1;
    }
    const FanOutStep& copies = lane.fan_outs[number];
    if (!copies.is_first && copies.fan_out == FanOut::kOneWay) work.fanned_out += 1;
    if (!copies.is_first && copies.fan_out == FanOut::kExchanged) work.exchanged += 1;
    const auto is_memory = [](const Chunk& chunk) {
      return chunk && chunk.buffer != Buffer::kCarry;
    };
    if (is_memory(step.src) && step.send_to != rank) work.local += 1;
    if (is_memory(step.dst)) work.local += 1;
    if (step.recv_from == rank) work.local += 1;
    if (step.recv_from != kNobody) ++operands;
    if (step.src) ++operands;
    const bool folds = step.dst.buffer == Buffer::kCarry || step.src.buffer == Buffer::kCarry;
    if (operands == 2 || folds) work.reduced += 1;
    return work;
  }

  void summarize() {
    double most = -1;
    for (const Rank& rank : ranks_) {
      const double weight = weigh(rank.done, kWeights[2]);
      if (weight > most) {
        most = weight;
        shape_.busiest = rank.done;
      }
      shape_.average += rank.done;
      shape_.waits += rank.waits;
      shape_.links += rank.sends_to;
      shape_.peers = std::max<double>(shape_.peers, rank.sends_to);
    }
    const double share = 1.0 / nranks_;
    for_each_count([share](double& count) { count *= share; }, shape_.average);
    shape_.waits *= share;
    shape_.links *= share;
  }

  std::array<Work, kPaths> longest_paths() {
    std::array<Work, kPaths> paths;
    for (std::size_t i = 0; i < kPaths; ++i) {
      const auto weight = [&](const Rank& rank) {
        return rank.last == kNone ? 0 : event(rank.last).weight[i];
      };
      const auto lighter = [&](const Rank& a, const Rank& b) { return weight(a) < weight(b); };
      paths[i] = work_on_path(std::max_element(ranks_.begin(), ranks_.end(), lighter)->last, i);
    }
    return paths;
  }

  const int nranks_;
  const int box_;
  std::vector<Rank> ranks_;
  std::vector<Lane> lanes_;
  std::array<Weight, 2> hop_weights_;  // by Reach
  std::size_t steps_ = 0;              // of all lanes in a pass
  std::vector<Weight> weights_;        // by step
  std::size_t first_event_ = 0;        // of the pass
  std::vector<Event> events_;          // of both passes
  std::vector<bool> links_used_;
  std::optional<Messages> messages_;
  Shape shape_;
};

}  // namespace

// What is sent ahead is one slice, and so one pass.
Shape walk(const Algorithm& algorithm, const Place& at) {
  return Walker(algorithm, at).run(at.window == 1);
}

}  // namespace catenary
