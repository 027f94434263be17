// Schedules in which every byte goes straight to where it is needed. What a rank has to send is all
// under way before it waits for anybody. Rank r begins with r + 1 and so on round the circle, so
// that not all ranks press on the same peer at once, and expects messages in the order in which
// that makes them arrive: from r - 1, r - 2, ...
#include "src/collective/algorithms.h"
#include "src/collective/fold.h"

namespace catenary {
namespace {

// Gives its only chunk to the i-th of the others. The last step keeps it, too, while it is in the
// caches.
Step give_to_all(const Place& at, int i, const Chunk& own) {
  return {.src = input(0), .dst = i == at.ranks - 1 ? own : Chunk{}, .send_to = at.after(i)};
}

}  // namespace

// Rank k reduces chunk k: its own part first, then those of k + 1, k + 2, ...
Steps direct_all_reduce(Place at) {
  for (int i = 1; i < at.ranks; ++i) co_yield {.src = input(at.after(i)), .send_to = at.after(i)};
  const Fold fold{
      .own = input(at.rank), .messages = at.ranks - 1, .chunk = at.rank, .dst = output(at.rank)};
  for (int i = 1; i < at.ranks; ++i) co_yield fold.step(i - 1, at.after(i));
  for (int i = 1; i < at.ranks; ++i) co_yield {.src = output(at.rank), .send_to = at.after(i)};
  for (int i = 1; i < at.ranks; ++i) {
    co_yield {.recv_from = at.after(-i), .dst = output(at.after(-i))};
  }
}

Steps direct_reduce_scatter(Place at) {
  for (int i = 1; i < at.ranks; ++i) co_yield {.src = input(at.after(i)), .send_to = at.after(i)};
  const Fold fold{
      .own = input(at.rank), .messages = at.ranks - 1, .chunk = at.rank, .dst = output(0)};
  for (int i = 1; i < at.ranks; ++i) co_yield fold.step(i - 1, at.after(i));
}

Steps direct_all_gather(Place at) {
  for (int i = 1; i < at.ranks; ++i) co_yield give_to_all(at, i, output(at.rank));
  for (int i = 1; i < at.ranks; ++i) {
    co_yield {.recv_from = at.after(-i), .dst = output(at.after(-i))};
  }
}

Steps direct_broadcast(Place at) {
  if (at.rank != at.root) {
    co_yield {.recv_from = at.root, .dst = output(0)};
    co_return;
  }
  for (int i = 1; i < at.ranks; ++i) co_yield give_to_all(at, i, output(0));
}

Steps direct_reduce(Place at) {
  if (at.rank != at.root) {
    co_yield {.src = input(0), .send_to = at.root};
    co_return;
  }
  const Fold fold{.own = input(0), .messages = at.ranks - 1, .dst = output(0)};
  for (int i = 1; i < at.ranks; ++i) co_yield fold.step(i - 1, at.after(i));
}

Steps direct_all_to_all(Place at) {
  for (int i = 1; i < at.ranks; ++i) co_yield {.src = input(at.after(i)), .send_to = at.after(i)};
  co_yield {.src = input(at.rank), .dst = output(at.rank)};
  for (int i = 1; i < at.ranks; ++i) {
    co_yield {.recv_from = at.after(-i), .dst = output(at.after(-i))};
  }
}

Steps direct_gather(Place at) {
  if (at.rank != at.root) {
    co_yield {.src = input(0), .send_to = at.root};
    co_return;
  }
  co_yield {.src = input(0), .dst = output(at.rank)};
  for (int i = 1; i < at.ranks; ++i) {
    co_yield {.recv_from = at.after(i), .dst = output(at.after(i))};
  }
}

Steps direct_scatter(Place at) {
  if (at.rank != at.root) {
    co_yield {.recv_from = at.root, .dst = output(0)};
    co_return;
  }
  for (int i = 1; i < at.ranks; ++i) co_yield {.src = input(at.after(i)), .send_to = at.after(i)};
  co_yield {.src = input(at.rank), .dst = output(0)};
}

Steps direct_send(Place at) { co_yield {.src = input(0), .send_to = at.root}; }

Steps direct_recv(Place at) { co_yield {.recv_from = at.root, .dst = output(0)}; }

}  // namespace catenary
