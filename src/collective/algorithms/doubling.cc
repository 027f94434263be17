// Schedules on a cube (cube.h) in which what ranks know doubles with every round, or what they are
// to know halves: partners differ in one bit of their corner's number, the lowest first on the way
// to the sum, so that the longest exchanges are between neighbours.
#include <vector>

#include "src/collective/algorithms.h"
#include "src/collective/algorithms/cube.h"
#include "src/collective/algorithms/exchange.h"

namespace catenary {

// Partners exchange sums of as many ranks each, and add them in the order of their ranks, so that
// all have the same bits. A sum is passed on to the next partner as it is made.
Steps recursive_doubling_all_reduce(Place at) {
  const Cube cube(at.ranks);
  if (const int host = cube.host_of(at.rank); host != kNobody) {
    co_yield {.src = input(0), .send_to = host};
    co_yield {.recv_from = host, .dst = output(0)};
    co_return;
  }
  const int guest = cube.guest_of(at.rank);
  Chunk sum = input(0);
  int from = guest;
  for (int bit = 1; bit < cube.corners; bit *= 2) {
    const int partner = cube.host(cube.corner_of(at.rank) ^ bit);
    const Chunk larger_sum = from == kNobody ? Chunk{} : scratch(0);
    co_yield {.recv_from = from,
              .src = sum,
              .dst = larger_sum,
              .send_to = partner,
              .received_first = from < at.rank && from != kNobody};
    if (larger_sum) sum = larger_sum;
    from = partner;
  }
  co_yield {.recv_from = from,
            .src = sum,
            .dst = output(0),
            .send_to = guest,
            .received_first = from < at.rank};
}

// After each round a rank has what twice as many corners give.
Steps recursive_doubling_all_gather(Place at) {
  const Cube cube(at.ranks);
  const int guest = cube.guest_of(at.rank);
  const int host = cube.host_of(at.rank);
  co_yield {.src = input(0), .dst = output(at.rank), .send_to = host};
  if (guest != kNobody) co_yield {.recv_from = guest, .dst = output(guest)};
  for (int bit = 1; host == kNobody && bit < cube.corners; bit *= 2) {
    const int corner = cube.corner_of(at.rank);
    const int partner = cube.host(corner ^ bit);
    const int mine = corner & -bit;
    const int theirs = mine ^ bit;
    const auto give = [&](int i) {
      return Step{.src = output(cube.host(mine) + i), .send_to = partner};
    };
    const auto take = [&](int i) {
      return Step{.recv_from = partner, .dst = output(cube.host(theirs) + i)};
    };
    const int gives = cube.host(mine + bit) - cube.host(mine);
    const int takes = cube.host(theirs + bit) - cube.host(theirs);
    for (const Step& step : exchange(at.window, gives, takes, give, take)) co_yield step;
  }
  for (int rank = 0; rank < at.ranks; ++rank) {
    if (host != kNobody && rank != at.rank) co_yield {.recv_from = host, .dst = output(rank)};
    if (guest != kNobody && rank != guest) co_yield {.src = output(rank), .send_to = guest};
  }
}

int chunk_per_corner(const Place& at) { return Cube(at.ranks).corners; }

// A reduce-scatter over corners in which a rank keeps the sums of those chunks whose numbers agree
// with its corner's in one more bit every round; then the same way back as an all-gather.
Steps halving_doubling_all_reduce(Place at) {
  const Cube cube(at.ranks);
  if (const int host = cube.host_of(at.rank); host != kNobody) {
    for (int c = 0; c < cube.corners; ++c) co_yield {.src = input(c), .send_to = host};
    for (int c = 0; c < cube.corners; ++c) co_yield {.recv_from = host, .dst = output(c)};
    co_return;
  }
  const int guest = cube.guest_of(at.rank);
  const int corner = cube.corner_of(at.rank);
  for (int c = 0; guest != kNobody && c < cube.corners; ++c) {
    co_yield {.recv_from = guest, .src = input(c), .dst = scratch(c)};
  }
  for (int bit = 1; bit < cube.corners; bit *= 2) {
    const int partner = cube.host(corner ^ bit);
    const int kept = cube.corners / (2 * bit);
    const auto keep = [&](int i) { return corner % (2 * bit) + i * 2 * bit; };
    const auto sum = [&](int c) { return bit == 1 && guest == kNobody ? input(c) : scratch(c); };
    const auto give = [&](int i) { return Step{.src = sum(keep(i) ^ bit), .send_to = partner}; };
    const auto take = [&](int i) {
      const int c = keep(i);
      return Step{.recv_from = partner, .src = sum(c), .dst = kept == 1 ? output(c) : scratch(c)};
    };
    for (const Step& step : exchange(at.window, kept, kept, give, take)) co_yield step;
  }
  for (int bit = cube.corners / 2; bit > 0; bit /= 2) {
    const int partner = cube.host(corner ^ bit);
    const int had = cube.corners / (2 * bit);
    const auto have = [&](int i) { return corner % (2 * bit) + i * 2 * bit; };
    const auto give = [&](int i) { return Step{.src = output(have(i)), .send_to = partner}; };
    const auto take = [&](int i) {
      return Step{.recv_from = partner, .dst = output(have(i) ^ bit)};
    };
    for (const Step& step : exchange(at.window, had, had, give, take)) co_yield step;
  }
  for (int c = 0; guest != kNobody && c < cube.corners; ++c) {
    co_yield {.src = output(c), .send_to = guest};
  }
}

// The first half of it, with a chunk for each rank. A guest adds its own part of its chunk last, so
// that the sum is complete where it is kept.
Steps recursive_halving_reduce_scatter(Place at) {
  const Cube cube(at.ranks);
  const int guest = cube.guest_of(at.rank);
  const int host = cube.host_of(at.rank);
  const int corner = cube.corner_of(at.rank);
  for (int c = 0; c < at.ranks; ++c) {
    if (host != kNobody && c != at.rank) co_yield {.src = input(c), .send_to = host};
    if (guest != kNobody && c != guest) {
      co_yield {.recv_from = guest, .src = input(c), .dst = scratch(c)};
    }
  }
  for (int bit = 1; host == kNobody && bit < cube.corners; bit *= 2) {
    const int partner = cube.host(corner ^ bit);
    std::vector<int> gives;
    std::vector<int> takes;
    for (int kept = corner % (2 * bit); kept < cube.corners; kept += 2 * bit) {
      for (int c = cube.host(kept); c < cube.host(kept + 1); ++c) takes.push_back(c);
      for (int c = cube.host(kept ^ bit); c < cube.host((kept ^ bit) + 1); ++c) gives.push_back(c);
    }
    const bool is_last = 2 * bit == cube.corners;
    const auto sum = [&](int c) {
      return bit == 1 && (guest == kNobody || c == guest) ? input(c) : scratch(c);
    };
    const auto give = [&](int i) {
      return Step{.src = sum(gives[static_cast<std::size_t>(i)]), .send_to = partner};
    };
    const auto take = [&](int i) {
      const int c = takes[static_cast<std::size_t>(i)];
      Step step{.recv_from = partner, .src = sum(c), .dst = scratch(c)};
      if (is_last) step.dst = c == at.rank ? output(0) : Chunk{};
      if (is_last && c == guest) step.send_to = guest;
      return step;
    };
    const auto count = [](const std::vector<int>& list) { return static_cast<int>(list.size()); };
    for (const Step& step : exchange(at.window, count(gives), count(takes), give, take)) {
      co_yield step;
    }
  }
  if (host != kNobody) co_yield {.recv_from = host, .src = input(at.rank), .dst = output(0)};
}

}  // namespace catenary
