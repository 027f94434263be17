// Programs: how a few threads would do a collective of many ranks if nothing but memory cost time.
// Each is a list of folds for each thread, in steps between which the threads meet. Several ways of
// doing the same are built; the fastest is the limit.
#pragma once

#include <cstddef>
#include <vector>

#include "bench/peers/limit_folds.h"
#include "bench/peers/plan.h"

namespace limits {

// The ranks' buffers, and memory that all ranks share.
struct Memory {
  std::vector<float*> send;
  std::vector<float*> recv;
  float* staging = nullptr;
};

// Floats of staging that build_programs() may use for so many ranks.
std::size_t staging_count(int ranks);

// [thread][step]
using Steps = std::vector<std::vector<std::vector<Fold>>>;

// Even and odd operations differ in the staging memory that they use, so that nobody writes what
// another still reads of the operation before.
struct Program {
  bool meets_before = false;  // all inputs must be there
  bool meets_after = false;   // no output is complete before
  bool streaming = false;
  Steps even;
  Steps odd;
};

// Ranks whose buffers others may reach into: results are folded from where the inputs are.
std::vector<Program> mapped_programs(const Point& point, int ranks, int threads,
                                     const Memory& memory);
// Ranks whose buffers are their own: everything goes through staging memory, chunk by chunk, with
// the chunks' copies in, folds and copies out overlapping.
std::vector<Program> private_programs(const Point& point, int ranks, int threads,
                                      const Memory& memory);

}  // namespace limits
