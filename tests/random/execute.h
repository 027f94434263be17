// Runs a program on Catenary: the ranks that one thread drives.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/random/program.h"
#include "tests/random/reference.h"

namespace catenary::testing {

// Ranks [first, first + seats) of the world, whose id this is. Throws Failure for a call that fails
// and for registers that are not as `expected`, by rank of the world.
void execute(const Program& program, int first, int seats, const ncclUniqueId& id,
             const std::vector<Registers>& expected);

}  // namespace catenary::testing
