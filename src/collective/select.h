// Which algorithm a collective runs, from plain numbers. Pure; any thread; called at plan time.
//
// All ranks must come to the same answer, so all must ask with the same numbers: the communicator
// agrees on them when it is made.
#pragma once

#include <cstddef>
#include <string_view>

#include "src/collective/algorithms.h"

namespace catenary {

// The most crowded machine of a communicator.
struct MachineFacts {
  int local_ranks = 1;  // ranks of the communicator on it
  int cores = 1;        // that those ranks may use together
  int box = 1;          // so many consecutive ranks share a machine, if all machines are alike
};

struct Selection {
  const Algorithm* algorithm = nullptr;
  int lanes = 1;
};

// `bytes` are those of the longer buffer. `forced` is a user's wish, empty for none: the collective
// runs the algorithm of that name if it has one that runs on such ranks, and otherwise what it
// would have run without. A name that no collective knows throws Error(kInvalidArgument), which
// lists the known ones.
Selection select(Collective collective, std::size_t bytes, int nranks, const MachineFacts& machine,
                 std::string_view forced = {});

}  // namespace catenary
