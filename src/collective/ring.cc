// Schedules that pass chunks round a ring of all ranks.
#include "src/collective/algorithms.h"
#include "src/collective/steps.h"

namespace catenary {

// Chunk c starts at rank c + 1, collects a contribution at every rank, is complete at rank c, and
// from there goes round once more.
Schedule ring_all_reduce(int rank, int nranks, int /*root*/) {
  if (nranks == 1) return schedule_of_one();
  Schedule schedule{.chunk_count = nranks, .steps = {}};
  const int next = rank_after(rank, 1, nranks);
  const int prev = rank_after(rank, -1, nranks);
  const auto chunk = [&](int back) { return rank_after(rank, -back, nranks); };
  schedule.steps.reserve(2 * static_cast<std::size_t>(nranks) - 1);
  schedule.add({.src = input(chunk(1)), .send_to = next});
  for (int hop = 2; hop < nranks; ++hop) {
    schedule.add({.recv_from = prev, .src = input(chunk(hop)), .send_to = next});
  }
  schedule.add({.recv_from = prev, .src = input(rank), .dst = output(rank), .send_to = next});
  for (int hop = 1; hop < nranks - 1; ++hop) {
    schedule.add({.recv_from = prev, .dst = output(chunk(hop)), .send_to = next});
  }
  schedule.add({.recv_from = prev, .dst = output(next)});
  return schedule;
}

Schedule ring_all_gather(int rank, int nranks, int /*root*/) {
  if (nranks == 1) return schedule_of_one();
  Schedule schedule{.chunk_count = nranks, .steps = {}};
  const int next = rank_after(rank, 1, nranks);
  const int prev = rank_after(rank, -1, nranks);
  schedule.steps.reserve(static_cast<std::size_t>(nranks));
  schedule.add({.src = input(0), .dst = output(rank), .send_to = next});
  for (int hop = 1; hop < nranks - 1; ++hop) {
    schedule.add(
        {.recv_from = prev, .dst = output(rank_after(rank, -hop, nranks)), .send_to = next});
  }
  schedule.add({.recv_from = prev, .dst = output(next)});
  return schedule;
}

// The first half of ring_all_reduce.
Schedule ring_reduce_scatter(int rank, int nranks, int /*root*/) {
  if (nranks == 1) return schedule_of_one();
  Schedule schedule{.chunk_count = nranks, .steps = {}};
  const int next = rank_after(rank, 1, nranks);
  const int prev = rank_after(rank, -1, nranks);
  schedule.steps.reserve(static_cast<std::size_t>(nranks));
  schedule.add({.src = input(prev), .send_to = next});
  for (int hop = 2; hop < nranks; ++hop) {
    schedule.add(
        {.recv_from = prev, .src = input(rank_after(rank, -hop, nranks)), .send_to = next});
  }
  schedule.add({.recv_from = prev, .src = input(rank), .dst = output(0)});
  return schedule;
}

}  // namespace catenary
