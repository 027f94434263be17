// Which steps of a schedule make one fold: consecutive steps that reduce messages from different
// peers into one scratch chunk, and a last one that reduces into the real destination. A fold is
// executed slice by slice, all its messages at a time, so its scratch chunk needs no memory: slice
// s of the result is `src` of the first step (if it has one), then slice s of each message, in the
// order of the steps.
//
// Pure; any thread. The checker proves that every schedule keeps to this shape.
#pragma once

#include <cstddef>

#include "src/collective/schedule.h"

namespace catenary {

// The number of steps from `first` on that are one fold; 1 for a step that is not part of any.
inline std::size_t fold_steps(const Schedule& schedule, std::size_t first) {
  std::size_t last = first;
  while (schedule.steps[last].dst.buffer == Buffer::kScratch) ++last;
  return last - first + 1;
}

}  // namespace catenary
