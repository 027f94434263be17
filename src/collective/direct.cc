// Schedules in which every byte goes straight to where it is needed. What a rank has to send is all
// under way before it waits for anybody. Rank r begins with r + 1 and so on round the circle, so
// that not all ranks press on the same peer at once, and expects messages in the order in which
// that makes them arrive: from r - 1, r - 2, ...
#include "src/collective/algorithms.h"
#include "src/collective/steps.h"

namespace catenary {
namespace {

void send_to_all_others(Schedule& schedule, Chunk chunk, int rank, int nranks) {
  for (int i = 1; i < nranks; ++i) {
    schedule.add({.src = chunk, .send_to = rank_after(rank, i, nranks)});
  }
}

void send_each_its_part(Schedule& schedule, int rank, int nranks) {
  for (int i = 1; i < nranks; ++i) {
    const int peer = rank_after(rank, i, nranks);
    schedule.add({.src = input(peer), .send_to = peer});
  }
}

void receive_part_of_each(Schedule& schedule, int rank, int nranks) {
  for (int i = 1; i < nranks; ++i) {
    const int peer = rank_after(rank, -i, nranks);
    schedule.add({.recv_from = peer, .dst = output(peer)});
  }
}

}  // namespace

// Rank k reduces chunk k: its own part first, then those of k + 1, k + 2, ...
Schedule direct_all_reduce(int rank, int nranks, int /*root*/) {
  if (nranks == 1) return schedule_of_one();
  Schedule schedule{.chunk_count = nranks, .steps = {}};
  schedule.steps.reserve(4 * static_cast<std::size_t>(nranks));
  send_each_its_part(schedule, rank, nranks);
  add_fold(schedule, input(rank), rank_after(rank, 1, nranks), nranks - 1, nranks, rank,
           output(rank));
  send_to_all_others(schedule, output(rank), rank, nranks);
  receive_part_of_each(schedule, rank, nranks);
  return schedule;
}

Schedule direct_reduce_scatter(int rank, int nranks, int /*root*/) {
  if (nranks == 1) return schedule_of_one();
  Schedule schedule{.chunk_count = nranks, .steps = {}};
  schedule.steps.reserve(2 * static_cast<std::size_t>(nranks));
  send_each_its_part(schedule, rank, nranks);
  add_fold(schedule, input(rank), rank_after(rank, 1, nranks), nranks - 1, nranks, rank, output(0));
  return schedule;
}

Schedule direct_all_gather(int rank, int nranks, int /*root*/) {
  Schedule schedule{.chunk_count = nranks, .steps = {}};
  schedule.steps.reserve(2 * static_cast<std::size_t>(nranks));
  send_to_all_others(schedule, input(0), rank, nranks);
  schedule.add({.src = input(0), .dst = output(rank)});
  receive_part_of_each(schedule, rank, nranks);
  return schedule;
}

Schedule direct_broadcast(int rank, int nranks, int root) {
  Schedule schedule;
  if (rank == root) {
    send_to_all_others(schedule, input(0), rank, nranks);
    schedule.add({.src = input(0), .dst = output(0)});
  } else {
    schedule.add({.recv_from = root, .dst = output(0)});
  }
  return schedule;
}

Schedule direct_reduce(int rank, int nranks, int root) {
  if (nranks == 1) return schedule_of_one();
  Schedule schedule;
  if (rank == root) {
    add_fold(schedule, input(0), rank_after(root, 1, nranks), nranks - 1, nranks, 0, output(0));
  } else {
    schedule.add({.src = input(0), .send_to = root});
  }
  return schedule;
}

Schedule direct_all_to_all(int rank, int nranks, int /*root*/) {
  Schedule schedule{.chunk_count = nranks, .steps = {}};
  schedule.steps.reserve(2 * static_cast<std::size_t>(nranks));
  send_each_its_part(schedule, rank, nranks);
  schedule.add({.src = input(rank), .dst = output(rank)});
  receive_part_of_each(schedule, rank, nranks);
  return schedule;
}

Schedule direct_gather(int rank, int nranks, int root) {
  Schedule schedule{.chunk_count = nranks, .steps = {}};
  if (rank == root) {
    schedule.add({.src = input(0), .dst = output(rank)});
    for (int i = 1; i < nranks; ++i) {
      const int peer = rank_after(root, i, nranks);
      schedule.add({.recv_from = peer, .dst = output(peer)});
    }
  } else {
    schedule.add({.src = input(0), .send_to = root});
  }
  return schedule;
}

Schedule direct_scatter(int rank, int nranks, int root) {
  Schedule schedule{.chunk_count = nranks, .steps = {}};
  if (rank == root) {
    send_each_its_part(schedule, rank, nranks);
    schedule.add({.src = input(rank), .dst = output(0)});
  } else {
    schedule.add({.recv_from = root, .dst = output(0)});
  }
  return schedule;
}

Schedule direct_send(int /*rank*/, int /*nranks*/, int root) {
  Schedule schedule;
  schedule.add({.src = input(0), .send_to = root});
  return schedule;
}

Schedule direct_recv(int /*rank*/, int /*nranks*/, int root) {
  Schedule schedule;
  schedule.add({.recv_from = root, .dst = output(0)});
  return schedule;
}

}  // namespace catenary
