#include "src/collective/shape.h"

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <mutex>
#include <tuple>

namespace catenary {
namespace {

// About a millisecond.
constexpr std::size_t kMostWalkedSteps = 8000;
constexpr int kMostShortRanks = 256;
// However many boxes there are, so many ranks of each are walked, and so many boxes of any size.
constexpr int kLeastRoom = 8;

// The binary logarithm, straight between powers of two: the same number on every machine.
double log2_of(int value) {
  const int whole = std::bit_width(static_cast<unsigned>(value)) - 1;
  const double power = static_cast<double>(1u << whole);
  return whole + (value - power) / power;
}

// Grows a count from what it was with three sizes, each about the half of the next, to another
// size: by the law, linear or logarithmic, that it follows. What falls comes to rest.
class Growth {
 public:
  using Sizes = std::array<int, 3>;

  Growth(const Sizes& from, int to) {
    const auto [quarter, half, full] = from;
    linear_ = static_cast<double>(to - full) / (full - half);
    logarithmic_ = (log2_of(to) - log2_of(full)) / (log2_of(full) - log2_of(half));
    most_logarithmic_ = 0.75 * (full - half) / (half - quarter);
    doubled_ = static_cast<double>(full) / half;
  }

  double operator()(double quarter, double half, double full) const {
    const double before = half - quarter;
    const double now = full - half;
    if (now <= 0) return full;
    // Which law it is shows in how it grew before, and in whether it doubles with the size.
    const bool is_linear =
        before > 0 && (now > most_logarithmic_ * before || full > 0.9 * doubled_ * half);
    return full + now * (is_linear ? linear_ : logarithmic_);
  }

  // Halves of `size`, of which the largest is at most `most`: what a size has in common with its
  // halves is how far it is from a power of two.
  static Sizes halves(int size, int most) {
    while (size > most) size = half(size);
    return {half(half(size)), half(size), size};
  }

 private:
  static int half(int size) { return (size + 1) / 2; }

  double linear_;
  double logarithmic_;
  double most_logarithmic_;  // times what it grew before, that it grows by this law
  double doubled_;           // about 2
};

Work grow(const Growth& growth, const Work& quarter, const Work& half, const Work& full) {
  Work grown;
  for_each_count([&growth](double& into, double a, double b, double c) { into = growth(a, b, c); },
                 grown, quarter, half, full);
  return grown;
}

Shape grow(const Growth& growth, const Shape& quarter, const Shape& half, const Shape& full) {
  Shape shape;
  shape.lanes = full.lanes;
  for (std::size_t i = 0; i < shape.paths.size(); ++i) {
    shape.paths[i] = grow(growth, quarter.paths[i], half.paths[i], full.paths[i]);
    shape.two_passes[i] =
        grow(growth, quarter.two_passes[i], half.two_passes[i], full.two_passes[i]);
  }
  shape.busiest = grow(growth, quarter.busiest, half.busiest, full.busiest);
  shape.average = grow(growth, quarter.average, half.average, full.average);
  shape.waits = growth(quarter.waits, half.waits, full.waits);
  shape.links = growth(quarter.links, half.links, full.links);
  shape.peers = growth(quarter.peers, half.peers, full.peers);
  return shape;
}

// A place as so many boxes of so many ranks. It grows along each of the two where there are more
// than are walked together with the other.
Shape grown_shape(const Algorithm& algorithm, const Place& wanted, int box, int boxes) {
  const auto room = [](int other) { return std::max(kMostWalkedRanks / other, kLeastRoom); };
  const auto grown_to = [](int size, int most, auto&& at) {
    const Growth::Sizes sizes = Growth::halves(size, most);
    return grow(Growth(sizes, size), at(sizes[0]), at(sizes[1]), at(sizes[2]));
  };
  if (box > room(boxes)) {
    return grown_to(box, room(boxes),
                    [&](int n) { return grown_shape(algorithm, wanted, n, boxes); });
  }
  if (boxes > room(box)) {
    return grown_to(boxes, room(box),
                    [&](int n) { return grown_shape(algorithm, wanted, box, n); });
  }
  Place place = wanted;
  place.ranks = box * boxes;
  place.box = box;
  return walk(algorithm, place);
}

// Whether a walk of all ranks, of which the first has the most to do, or nearly, takes no longer
// than to grow from smaller places. Trees are short, and their depth follows no smooth law.
bool is_short(const Algorithm& algorithm, const Place& at) {
  if (at.ranks > kMostShortRanks) return false;
  const std::size_t most = kMostWalkedSteps / static_cast<std::size_t>(at.ranks * algorithm.lanes);
  std::size_t steps = 0;
  for ([[maybe_unused]] const Step& step : steps_of(algorithm, at)) {
    if (++steps > most) return false;
  }
  return true;
}

Shape new_shape(const Algorithm& algorithm, const Place& at) {
  if (at.ranks <= kMostWalkedRanks || is_short(algorithm, at)) return walk(algorithm, at);
  Shape shape = grown_shape(algorithm, at, at.box, at.ranks / at.box);
  shape.chunk_count = algorithm.chunks(at);
  forget_fan_outs(shape);
  return shape;
}

}  // namespace

void forget_fan_outs(Shape& shape) {
  const auto forget = [](Work& work) { work.fanned_out = work.exchanged = 0; };
  std::ranges::for_each(shape.paths, forget);
  std::ranges::for_each(shape.two_passes, forget);
  forget(shape.busiest);
  forget(shape.average);
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
  return known.emplace(key, new_shape(algorithm, place)).first->second;
}

}  // namespace catenary
