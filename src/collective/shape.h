// Shape: what a schedule costs, without saying what anything costs: how much work its longest
// paths, its busiest rank and all ranks together have, in steps, messages and multiples of a chunk.
//
// It is found by walking the very steps that are executed, so a new algorithm has a shape without a
// line about it. All ranks are walked up to kMostWalkedRanks; beyond, the shape grows from smaller
// ones by the law, linear or logarithmic, that these follow. Where there are boxes, it grows along
// two ways: with the ranks of a box, and with the boxes.
//
// Pure; any thread; nothing waits. shape_of() keeps what it found, for all communicators of the
// process.
#pragma once

#include <array>

#include "src/collective/algorithms.h"
#include "src/collective/work.h"

namespace catenary {

struct Shape {
  int chunk_count = 1;
  int lanes = 1;
  // Which path is the longest depends on what is expensive: hops, bytes, or a bit of both. The time
  // of a schedule is that of the longest of these; and of two passes of it, one behind the other,
  // that of the longest of the next. What the second pass adds is less than the first one took
  // where ranks may begin it before others are done, and no less than what the busiest rank does.
  std::array<Work, 3> paths;
  std::array<Work, 3> two_passes;  // where the window is 1
  Work busiest;                    // of one rank, in all its lanes
  Work average;                    // of the ranks
  double waits = 0;                // of a rank on average: how often it has to let others run first
  double links = 0;                // of a rank on average: links that it writes to
  double peers = 0;                // most that one rank writes to
};

inline constexpr int kMostWalkedRanks = 64;

// Of the place, all that ranks and lanes have in common: ranks, box and window. It must be one
// that the algorithm runs on.
Shape walk(const Algorithm& algorithm, const Place& at);
const Shape& shape_of(const Algorithm& algorithm, const Place& at);

// As if each copy were made. Shapes that grow have no others: fan-outs begin and end with numbers
// of peers, and follow no law.
void forget_fan_outs(Shape& shape);

}  // namespace catenary
