// Schedules along trees: sums go up, every rank folding those of its children, and results go down.
// Gathering and scattering move each rank's part on its own, so what a rank passes on it does not
// keep.
#include "src/collective/algorithms/tree.h"

#include <algorithm>
#include <bit>

#include "src/collective/algorithms.h"
#include "src/collective/fold.h"

namespace catenary {
namespace {

// One chunk's sum, as far as this rank's subtree goes. At the root it is complete, and goes to
// `then` as well.
Steps reduce_up(const TreeNode& node, int chunk, int then = kNobody) {
  const bool is_root = node.parent == kNobody;
  if (node.children.empty()) co_yield {.src = input(chunk), .send_to = node.parent};
  const Fold fold{.own = input(chunk),
                  .messages = static_cast<int>(node.children.size()),
                  .chunk = chunk,
                  .dst = is_root ? output(chunk) : Chunk{},
                  .send_to = is_root ? then : node.parent};
  int taken = 0;
  for (const int child : node.children) co_yield fold.step(taken++, child);
}

// What came from the parent is kept and passed on, to the deepest subtree first. Without a parent,
// that child has been served.
Steps pass_down(const TreeNode& node, int chunk) {
  if (node.parent != kNobody) {
    co_yield {.recv_from = node.parent,
              .dst = output(chunk),
              .send_to = node.children.empty() ? kNobody : node.children.back()};
  }
  for (std::size_t child = node.children.size(); child-- > 1;) {
    co_yield {.src = output(chunk), .send_to = node.children[child - 1]};
  }
}

// The root keeps its own copy of a chunk last, while that is in the caches.
Steps broadcast(TreeNode node, int chunks) {
  for (int chunk = 0; chunk < chunks; ++chunk) {
    if (node.parent != kNobody) {
      for (const Step& step : pass_down(node, chunk)) co_yield step;
      continue;
    }
    for (std::size_t child = node.children.size(); child-- > 1;) {
      co_yield {.src = input(chunk), .send_to = node.children[child]};
    }
    co_yield {.src = input(chunk), .dst = output(chunk), .send_to = node.children.front()};
  }
}

Steps reduce(TreeNode node, int chunks) {
  for (int chunk = 0; chunk < chunks; ++chunk) {
    for (const Step& step : reduce_up(node, chunk)) co_yield step;
  }
}

// Chunks follow each other up and down. `depth` links lead to the root and as many back, and each
// holds a chunk: so many a rank has under way before it waits for the first to come down.
Steps all_reduce(TreeNode node, int chunks) {
  const int ahead = std::max(2 * node.depth - 1, 0);
  for (int chunk = 0; chunk < chunks + ahead; ++chunk) {
    if (chunk < chunks) {
      const int first_down = node.children.empty() ? kNobody : node.children.back();
      for (const Step& step : reduce_up(node, chunk, first_down)) co_yield step;
    }
    if (chunk < ahead) continue;
    for (const Step& step : pass_down(node, chunk - ahead)) co_yield step;
  }
}

// The child of that number, counted from the least, of a place of the binomial tree, and what hangs
// from it: places [first, end), of which `first` is its own.
struct Subtree {
  int first;
  int end;
};
Subtree binomial_subtree(const Place& at, std::size_t child) {
  const int self = at.after(-at.root);
  return {self + (1 << child), std::min(self + (2 << child), at.ranks)};
}

}  // namespace

TreeNode knomial_node(const Place& at, int radix) {
  const int self = at.after(-at.root);
  const auto rank_of = [&](int place) { return (at.root + place) % at.ranks; };
  TreeNode node;
  for (int weight = 1; weight < at.ranks; weight *= radix) {
    const int digit = self / weight % radix;
    if (digit != 0) {
      if (node.depth++ == 0) node.parent = rank_of(self - digit * weight);
    }
    for (int child = self + weight;
         node.depth == 0 && child < at.ranks && child < self + radix * weight; child += weight) {
      node.children.push_back(rank_of(child));
    }
  }
  return node;
}

TreeNode double_tree_node(const Place& at) {
  const int places = at.ranks - 1;
  const bool second = at.lane % 2 == 1;
  const bool mirrored = second && places % 2 == 0;
  const bool shifted = second && places % 2 == 1;
  // Place 0 is the root's; the first tree's places are distances from the root.
  const auto rank_of = [&](int place) {
    if (mirrored && place != 0) place = places + 1 - place;
    if (shifted && place != 0) place = place % places + 1;
    return (at.root + place) % at.ranks;
  };
  const auto parent_of = [&](int place) {
    const int bit = place & -place;
    const int above = (place - bit) | (bit << 1);
    return above <= places ? above : place - bit;
  };
  int self = at.after(-at.root);
  if (mirrored && self != 0) self = places + 1 - self;
  if (shifted && self != 0) self = (self + places - 2) % places + 1;

  TreeNode node;
  const int top = static_cast<int>(std::bit_floor(static_cast<unsigned>(places)));
  if (self == 0) {
    node.children = {rank_of(top)};
    return node;
  }
  node.parent = rank_of(parent_of(self));
  for (int place = self; place != 0; place = parent_of(place)) ++node.depth;
  const int half = (self & -self) / 2;
  int right = half;
  while (self + right > places) right /= 2;
  if (right > 0) node.children.push_back(rank_of(self + right));
  if (half > 0) node.children.push_back(rank_of(self - half));
  return node;
}

Steps tree_broadcast(Place at) { return broadcast(knomial_node(at, 2), 1); }
Steps tree_reduce(Place at) { return reduce(knomial_node(at, 2), 1); }
Steps tree_all_reduce(Place at) { return all_reduce(knomial_node(at, 2), 1); }

// A rank sends its own part and then those of its subtree, in order of place.
Steps tree_gather(Place at) {
  const TreeNode node = knomial_node(at, 2);
  const bool is_root = node.parent == kNobody;
  co_yield {.src = input(0), .dst = is_root ? output(at.rank) : Chunk{}, .send_to = node.parent};
  for (std::size_t child = 0; child < node.children.size(); ++child) {
    const Subtree below = binomial_subtree(at, child);
    for (int place = below.first; place < below.end; ++place) {
      co_yield {.recv_from = node.children[child],
                .dst = is_root ? output((at.root + place) % at.ranks) : Chunk{},
                .send_to = node.parent};
    }
  }
}

// The same backwards.
Steps tree_scatter(Place at) {
  const TreeNode node = knomial_node(at, 2);
  const bool is_root = node.parent == kNobody;
  for (std::size_t child = node.children.size(); child-- > 0;) {
    const Subtree below = binomial_subtree(at, child);
    for (int place = below.end - 1; place >= below.first; --place) {
      co_yield {.recv_from = node.parent,
                .src = is_root ? input((at.root + place) % at.ranks) : Chunk{},
                .send_to = node.children[child]};
    }
  }
  co_yield {.recv_from = node.parent, .src = is_root ? input(at.rank) : Chunk{}, .dst = output(0)};
}

Steps knomial4_broadcast(Place at) { return broadcast(knomial_node(at, 4), 1); }
Steps knomial4_reduce(Place at) { return reduce(knomial_node(at, 4), 1); }
Steps knomial4_all_reduce(Place at) { return all_reduce(knomial_node(at, 4), 1); }

Steps double_tree_broadcast(Place at) { return broadcast(double_tree_node(at), kTreeChunks); }
Steps double_tree_reduce(Place at) { return reduce(double_tree_node(at), kTreeChunks); }
Steps double_tree_all_reduce(Place at) { return all_reduce(double_tree_node(at), kTreeChunks); }

}  // namespace catenary
