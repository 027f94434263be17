// PAT, parallel aggregated trees (Jeaugey, arXiv 2506.20252): every rank is the root of a binomial
// tree of its own, for what it gives or gets, and all trees are the same but for where they begin.
// So at all ranks the same edge of the tree is served at a time, and the messages of a round, all
// to one peer, are of different trees.
//
// Place t of a tree is t ranks from its root, and hangs from t without its lowest bit. The edge
// above it is that bit long; half of all edges are one rank long, and only one crosses half of the
// ranks.
#include <bit>

#include "src/base/rounding.h"
#include "src/collective/algorithms.h"
#include "src/collective/algorithms/exchange.h"

namespace catenary {
namespace {

constexpr int lowest_bit(int place) { return place & -place; }

// Edges above places first, first + stride, ..., all of one length, are a round.
struct Round {
  int first;
  int stride;
  int place(int i) const { return first + i * stride; }
  int length() const { return lowest_bit(first); }
  int count(int ranks) const { return first < ranks ? (ranks - 1 - first) / stride + 1 : 0; }
};

// What a rank has received of a chunk it passes on from `output`, so all edges of one length are
// one round, the longest first.
auto gather_round(const Place& at, Round round) {
  const auto give = [at, round](int i) {
    const int place = round.place(i);
    return Step{.src = output(at.after(round.length() - place)),
                .send_to = at.after(round.length())};
  };
  const auto take = [at, round](int i) {
    return Step{.recv_from = at.after(-round.length()), .dst = output(at.after(-round.place(i)))};
  };
  const int count = round.count(at.ranks);
  return exchange(at.window, count, count, give, take);
}

// Sums go the other way, and need memory on their way. A tree is cut into `trees` equal ones of
// `span` places each, few enough for a link to hold a message of each: their edges are served
// together. Within those, edges are served in the order in which one walks round a tree, so that
// just one place of each depth has an unfinished sum. Where chunks differ in length, each sum has a
// scratch chunk as long as itself instead.
enum class Sums { kOfEachDepth, kOfEachChunk };
struct Forest {
  Place at;
  Sums sums;
  int span = 1;
  int trees = 1;

  explicit Forest(const Place& place, Sums kept = Sums::kOfEachDepth) : at(place), sums(kept) {
    while (divide_up(at.ranks, span) > at.window) span *= 2;
    trees = divide_up(at.ranks, span);
  }
  Chunk sum(int place) const {
    if (sums == Sums::kOfEachChunk) return scratch(at.after(-place));
    const int within = place % span;
    const int depth = std::countr_zero(static_cast<unsigned>(within == 0 ? span : within));
    return scratch(depth * trees + place / span);
  }
};

int depths(const Forest& forest) {
  return std::countr_zero(static_cast<unsigned>(forest.span)) + 1;
}

// The sum of all that hangs from a place goes up, and one from below comes in.
auto reduce_round(const Place& at, const Forest& forest, Round round) {
  const auto give = [at, forest, round](int i) {
    const int place = round.place(i);
    const bool is_leaf = lowest_bit(place) == 1 || place + 1 == at.ranks;
    return Step{.src = is_leaf ? input(at.after(-place)) : forest.sum(place),
                .send_to = at.after(-round.length())};
  };
  const auto take = [at, forest, round](int i) {
    const int place = round.place(i) - round.length();
    const bool is_first = round.length() == 1;
    const bool is_complete = place == 0 && 2 * round.length() >= at.ranks;
    return Step{.recv_from = at.after(round.length()),
                .src = is_first ? input(at.after(-place)) : forest.sum(place),
                .dst = is_complete ? output(0) : forest.sum(place)};
  };
  const int count = round.count(at.ranks);
  return exchange(at.window, count, count, give, take);
}

Steps reduce_scatter(Place at, Sums sums) {
  const Forest forest(at, sums);
  for (int leaf = 1; leaf < forest.span; leaf += 2) {
    // The leaf, and then the places whose last leaf it is.
    for (int below = 1; lowest_bit(leaf + 1 - below) == below; below *= 2) {
      const Round round{leaf + 1 - below, forest.span};
      for (const Step& step : reduce_round(at, forest, round)) co_yield step;
    }
  }
  for (int length = forest.span; length < at.ranks; length *= 2) {
    for (const Step& step : reduce_round(at, forest, {length, 2 * length})) co_yield step;
  }
}

}  // namespace

Steps pat_all_gather(Place at) {
  co_yield {.src = input(0), .dst = output(at.rank)};
  int length = static_cast<int>(std::bit_floor(static_cast<unsigned>(at.ranks - 1)));
  for (; length > 0; length /= 2) {
    for (const Step& step : gather_round(at, {length, 2 * length})) co_yield step;
  }
}

// One of each depth in each tree.
int pat_sums(const Place& at) {
  const Forest forest(at);
  return depths(forest) * forest.trees;
}

Steps pat_reduce_scatter(Place at) { return reduce_scatter(at, Sums::kOfEachDepth); }
Steps pat_reduce_scatter_uneven(Place at) { return reduce_scatter(at, Sums::kOfEachChunk); }

}  // namespace catenary
