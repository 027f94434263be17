#include "src/collective/shape.h"

#include <algorithm>
#include <bit>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <tuple>
#include <vector>

#include "src/base/error.h"

namespace catenary {
namespace {

// What things weigh while one path is sought.
struct Weights {
  double hop;
  double message;
  double chunk;
};
constexpr Weights kWeights[] = {{1, 0.01, 0.001}, {0.001, 0.01, 1}, {1, 0.3, 0.5}};

double weigh(const Work& work, const Weights& weights) {
  return weights.hop * (work.hops[0] + work.hops[1]) +
         weights.message * (work.steps + work.messages[0] + work.messages[1]) +
         weights.chunk * (work.wired[0] + work.wired[1] + work.local + work.reduced);
}

// A point on a path: what was done up to here, and what that weighs.
struct Point {
  double weight = 0;
  Work work;
};

Work hop(Reach reach) {
  Work work;
  work.hops[static_cast<int>(reach)] = 1;
  return work;
}

// Runs the schedules of all ranks side by side, with messages that take no room.
class Walker {
 public:
  Walker(const Algorithm& algorithm, const Place& all, const Weights& weights)
      : nranks_(all.ranks),
        box_(all.box),
        weights_(weights),
        ranks_(static_cast<std::size_t>(all.ranks)) {
    shape_.lanes = algorithm.lanes;
    for (int rank = 0; rank < nranks_; ++rank) {
      for (int lane = 0; lane < shape_.lanes; ++lane) {
        Place at = all;
        at.rank = rank;
        at.lane = lane;
        add_lane(algorithm, at);
      }
    }
  }

  Shape run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (Lane& lane : lanes_) {
        while (lane.next < lane.schedule.steps.size() && try_step(lane)) moved = true;
      }
    }
    summarize();
    return shape_;
  }

  Work longest_path() const {
    const auto lighter = [](const Rank& a, const Rank& b) { return a.at.weight < b.at.weight; };
    return std::max_element(ranks_.begin(), ranks_.end(), lighter)->at.work;
  }

 private:
  struct Rank {
    Point at;
    Work done;
    int waits = 0;
    std::set<std::pair<int, int>> sends_to;  // peer, lane
  };
  struct Lane {
    int rank;
    int lane;
    Schedule schedule;
    std::size_t next = 0;
  };
  using Link = std::tuple<int, int, int>;  // from, to, lane

  void add_lane(const Algorithm& algorithm, Place at) {
    // The two ends of point-to-point are two collectives; rank 0 sends to rank 1.
    const bool point_to_point =
        algorithm.collective == Collective::kSend || algorithm.collective == Collective::kRecv;
    const Algorithm* run = &algorithm;
    if (point_to_point) {
      at.root = 1 - at.rank;
      const Collective kind = at.rank == 0 ? Collective::kSend : Collective::kRecv;
      run = find_algorithm(kind, algorithm.name);
    }
    lanes_.push_back({at.rank, at.lane, schedule_of(*run, at), 0});
    shape_.chunk_count = lanes_.back().schedule.chunk_count;
  }

  Reach reach(int a, int b) const { return a / box_ == b / box_ ? Reach::kBox : Reach::kFar; }

  // Does the next step if its message is there.
  bool try_step(Lane& lane) {
    const Step& step = lane.schedule.steps[lane.next];
    Rank& rank = ranks_[static_cast<std::size_t>(lane.rank)];
    if (step.recv_from != kNobody) {
      std::deque<Point>& queue = in_flight_[{step.recv_from, lane.rank, lane.lane}];
      if (queue.empty()) return false;
      take(rank, queue.front());
      queue.pop_front();
    }
    const Work work = work_of(step, lane.rank);
    rank.done += work;
    rank.at.work += work;
    rank.at.weight += weigh(work, weights_);
    if (step.send_to != kNobody) {
      Point sent = rank.at;
      const Work way = hop(reach(lane.rank, step.send_to));
      if (step.send_to != lane.rank) {
        sent.work += way;
        sent.weight += weigh(way, weights_);
        rank.sends_to.emplace(step.send_to, lane.lane);
      }
      in_flight_[{lane.rank, step.send_to, lane.lane}].push_back(sent);
    }
    ++lane.next;
    return true;
  }

  static void take(Rank& rank, const Point& message) {
    if (message.weight <= rank.at.weight) return;
    rank.at = message;
    ++rank.waits;
  }

  // As the engine does it: a fold is one step, and a message to oneself that only carries input is
  // read in place.
  Work work_of(const Step& step, int rank) const {
    Work work;
    work.steps = step.dst.buffer == Buffer::kCarry || step.send_to == rank ? 0 : 1;
    int operands = 0;
    for (const int peer : {step.recv_from, step.send_to}) {
      if (peer == kNobody || peer == rank) continue;
      const int index = static_cast<int>(reach(rank, peer));
      work.messages[index] += 1;
      work.wired[index] += 1;
    }
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
    for (const Lane& lane : lanes_) {
      if (lane.next < lane.schedule.steps.size()) {
        throw_error(ErrorCode::kInternal, "a schedule of %d ranks waits for ever at rank %d",
                    nranks_, lane.rank);
      }
    }
    double most = -1;
    double links = 0;
    for (const Rank& rank : ranks_) {
      const double weight = weigh(rank.done, kWeights[2]);
      if (weight > most) {
        most = weight;
        shape_.busiest = rank.done;
      }
      shape_.average += rank.done;
      shape_.waits += rank.waits;
      links += static_cast<double>(rank.sends_to.size());
      shape_.peers = std::max(shape_.peers, static_cast<double>(rank.sends_to.size()));
    }
    const double share = 1.0 / nranks_;
    for_each_count([share](double& count) { count *= share; }, shape_.average);
    shape_.waits *= share;
    shape_.links = links * share;
  }

  const int nranks_;
  const int box_;
  const Weights weights_;
  std::vector<Rank> ranks_;
  std::vector<Lane> lanes_;
  std::map<Link, std::deque<Point>> in_flight_;
  Shape shape_;
};

// The binary logarithm, straight between powers of two: the same number on every machine.
double log2_of(int value) {
  const int whole = std::bit_width(static_cast<unsigned>(value)) - 1;
  const double power = static_cast<double>(1u << whole);
  return whole + (value - power) / power;
}

// Grows a count from what it was with a quarter, a half and all of `base` ranks. What falls comes
// to rest.
class Growth {
 public:
  Growth(int base, int nranks)
      : linear_(2.0 * (nranks - base) / base), logarithmic_(log2_of(nranks) - log2_of(base)) {}

  double operator()(double quarter, double half, double full) const {
    const double before = half - quarter;
    const double now = full - half;
    if (now <= 0) return full;
    return full + now * (now > 1.5 * before ? linear_ : logarithmic_);
  }

 private:
  double linear_;
  double logarithmic_;
};

Work grow(const Growth& growth, const Work& quarter, const Work& half, const Work& full) {
  Work grown;
  for_each_count([&growth](double& into, double a, double b, double c) { into = growth(a, b, c); },
                 grown, quarter, half, full);
  return grown;
}

// From rank counts that double, as multiples of the box: of two boxes at least, since algorithms of
// two levels do not run in one.
Shape grown_shape(const Algorithm& algorithm, const Place& wanted) {
  const bool one_box = wanted.box == wanted.ranks;
  int quarter = one_box || wanted.box == 1 ? 1 : 2 * wanted.box;
  while (4 * quarter < kMostWalkedRanks) quarter *= 2;
  const int full = 4 * quarter;
  const auto at = [&](int ranks) {
    Place place = wanted;
    place.ranks = ranks;
    if (one_box) place.box = ranks;
    return walk(algorithm, place);
  };
  if (full >= wanted.ranks) return at(wanted.ranks);
  const Shape a = at(quarter);
  const Shape b = at(2 * quarter);
  const Shape c = at(full);
  const Growth growth(full, wanted.ranks);
  Shape shape;
  shape.chunk_count = algorithm.chunks(wanted);
  shape.lanes = c.lanes;
  for (std::size_t i = 0; i < shape.paths.size(); ++i) {
    shape.paths[i] = grow(growth, a.paths[i], b.paths[i], c.paths[i]);
  }
  shape.busiest = grow(growth, a.busiest, b.busiest, c.busiest);
  shape.average = grow(growth, a.average, b.average, c.average);
  shape.waits = growth(a.waits, b.waits, c.waits);
  shape.links = growth(a.links, b.links, c.links);
  shape.peers = growth(a.peers, b.peers, c.peers);
  return shape;
}

}  // namespace

Shape walk(const Algorithm& algorithm, const Place& at) {
  Shape shape;
  for (std::size_t i = 0; i < std::size(kWeights); ++i) {
    Walker walker(algorithm, at, kWeights[i]);
    const Shape seen = walker.run();
    if (i == 0) shape = seen;
    shape.paths[i] = walker.longest_path();
  }
  return shape;
}

// Point-to-point is between two ranks, however many there are.
const Shape& shape_of(const Algorithm& algorithm, const Place& at) {
  Place place{.ranks = at.ranks, .box = at.box, .window = algorithm.sends_ahead ? at.window : 1};
  if (algorithm.collective == Collective::kSend || algorithm.collective == Collective::kRecv) {
    place.box = at.box > 1 ? 2 : 1;
    place.ranks = 2;
  }
  static std::mutex mutex;
  static auto& known = *new std::map<std::tuple<const Algorithm*, int, int, int>, Shape>;
  const std::lock_guard lock(mutex);
  const std::tuple key{&algorithm, place.ranks, place.box, place.window};
  const auto found = known.find(key);
  if (found != known.end()) return found->second;
  const Shape shape =
      place.ranks <= kMostWalkedRanks ? walk(algorithm, place) : grown_shape(algorithm, place);
  return known.emplace(key, shape).first->second;
}

}  // namespace catenary
