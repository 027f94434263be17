// The pieces that algorithms are written with. Pure.
#pragma once

#include "src/collective/schedule.h"

namespace catenary {

// Ranks sit on a circle: the one `distance` places after another, or before it if negative;
// |distance| <= nranks.
constexpr int rank_after(int rank, int distance, int nranks) {
  return (rank + distance + nranks) % nranks;
}

// What a communicator of one rank does, whatever the collective.
inline Schedule schedule_of_one() {
  Schedule schedule;
  schedule.add({.src = input(0), .dst = output(0)});
  return schedule;
}

// Adds a fold (see fold.h): reduces `own`, if it is a chunk, and then a message from each of
// `messages` ranks, first_peer, first_peer + 1, ..., into dst, by way of scratch(index).
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
