// Which steps of a schedule make one fold: consecutive steps that reduce messages from different
// peers into one scratch chunk, and a last one that reduces into the real destination. A fold is
// executed slice by slice, all its messages at a time, so its scratch chunk needs no memory: slice
// s of the result is `src` of the first step (if it has one), then slice s of each message, in the
// order of the steps.
//
// Pure; any thread. The checker proves that every schedule keeps to this shape.
#pragma once

#include <cstddef>

#include "src/collective/neighbors.h"
#include "src/collective/schedule.h"

namespace catenary {

// The number of steps from `first` on that are one fold; 1 for a step that is not part of any.
inline std::size_t fold_steps(const Schedule& schedule, std::size_t first) {
  std::size_t last = first;
  while (schedule.steps[last].dst.buffer == Buffer::kScratch) ++last;
  return last - first + 1;
}

// Adds the steps that reduce `own` (if it is a chunk) and then a message from each of `messages`
// ranks, first_peer, first_peer + 1, ..., into dst, by way of scratch(index).
inline void add_fold(Schedule& schedule, Chunk own, int first_peer, int messages, int nranks,
                     int index, Chunk dst) {
  Chunk so_far = own;
  for (int i = 0; i < messages; ++i) {
    const bool last = i + 1 == messages;
    schedule.add({.recv_from = rank_after(first_peer, i, nranks),
                  .src = so_far,
                  .dst = last ? dst : scratch(index)});
    so_far = scratch(index);
  }
}

}  // namespace catenary
