// Folds: consecutive steps that reduce messages from different peers into one carry, and a last one
// that takes the result to its real destination. A fold is executed slice by slice, all its
// messages at a time: slice s of the result is `src` of the first step (if it has one), then slice
// s of each message, in the order of the steps.
//
// Pure; any thread. The checker proves that every schedule keeps to this shape.
#pragma once

#include <cstddef>

#include "src/collective/schedule.h"

namespace catenary {

// The number of steps from `first` on that are one fold; 1 for a step that is not part of any.
inline std::size_t fold_steps(const Schedule& schedule, std::size_t first) {
  std::size_t last = first;
  while (schedule.steps[last].dst.buffer == Buffer::kCarry) ++last;
  return last - first + 1;
}

// A fold as algorithms write it: `own`, if it is a chunk, then so many messages, kept in `dst`,
// sent to `send_to`, or both.
struct Fold {
  Chunk own = {};
  int messages = 0;
  int chunk = 0;  // as long as this one
  Chunk dst = {};
  int send_to = kNobody;

  // The step that takes the i-th message.
  constexpr Step step(int i, int from) const {
    const bool last = i + 1 == messages;
    return {.recv_from = from,
            .src = i == 0 ? own : carry(chunk),
            .dst = last ? dst : carry(chunk),
            .send_to = last ? send_to : kNobody};
  }
};

}  // namespace catenary
