// Ranks as the corners of a cube, for algorithms in which partners differ in one bit. Where the
// number of ranks is no power of two, some corners are two neighbouring ranks: the host does the
// corner's part, and the guest hands in what it has before and gets its result after.
//
// Pure values; any thread.
#pragma once

#include <algorithm>
#include <bit>

#include "src/collective/schedule.h"

namespace catenary {

struct Cube {
  int corners;
  int guests;  // the first so many corners have one

  explicit Cube(int ranks)
      : corners(static_cast<int>(std::bit_floor(static_cast<unsigned>(ranks)))),
        guests(ranks - corners) {}

  // Ranks [host(c), host(c + 1)) are corner c, the host first.
  int host(int corner) const { return corner + std::min(corner, guests); }
  int corner_of(int rank) const { return rank < 2 * guests ? rank / 2 : rank - guests; }
  // Of a host that has one, else nobody; and the other way round.
  int guest_of(int rank) const { return rank < 2 * guests && rank % 2 == 0 ? rank + 1 : kNobody; }
  int host_of(int rank) const { return rank < 2 * guests && rank % 2 == 1 ? rank - 1 : kNobody; }
};

}  // namespace catenary
