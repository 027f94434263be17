// Schedules that pass chunks round a ring of all ranks.
#include "src/collective/algorithms.h"

namespace catenary {

// Chunk c starts at rank c + 1, collects a contribution at every rank, is complete at rank c, and
// from there goes round once more.
Steps ring_all_reduce(Place at) {
  const int next = at.after(1);
  const int prev = at.after(-1);
  co_yield {.src = input(prev), .send_to = next};
  for (int hop = 2; hop < at.ranks; ++hop) {
    co_yield {.recv_from = prev, .src = input(at.after(-hop)), .send_to = next};
  }
  co_yield {.recv_from = prev, .src = input(at.rank), .dst = output(at.rank), .send_to = next};
  for (int hop = 1; hop < at.ranks - 1; ++hop) {
    co_yield {.recv_from = prev, .dst = output(at.after(-hop)), .send_to = next};
  }
  co_yield {.recv_from = prev, .dst = output(next)};
}

// The second half of ring_all_reduce.
Steps ring_all_gather(Place at) {
  const int next = at.after(1);
  const int prev = at.after(-1);
  co_yield {.src = input(0), .dst = output(at.rank), .send_to = next};
  for (int hop = 1; hop < at.ranks - 1; ++hop) {
    co_yield {.recv_from = prev, .dst = output(at.after(-hop)), .send_to = next};
  }
  co_yield {.recv_from = prev, .dst = output(next)};
}

// The first half of ring_all_reduce.
Steps ring_reduce_scatter(Place at) {
  const int next = at.after(1);
  const int prev = at.after(-1);
  co_yield {.src = input(prev), .send_to = next};
  for (int hop = 2; hop < at.ranks; ++hop) {
    co_yield {.recv_from = prev, .src = input(at.after(-hop)), .send_to = next};
  }
  co_yield {.recv_from = prev, .src = input(at.rank), .dst = output(0)};
}

}  // namespace catenary
