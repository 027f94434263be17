#include "src/proof/loans.h"

#include <gtest/gtest.h>

namespace catenary::proof {
namespace {

// As if whatever is given could be lent in place.
std::vector<Lending> all_in_place(const Algorithm& algorithm, const Place& at, const Schedule& mine,
                                  const TrafficOf& traffic_of) {
  std::vector<Lending> found = lendings(algorithm, at, mine, traffic_of);
  for (Lending& each : found) each.in_place = static_cast<bool>(each.chunk);
  return found;
}

ProofCase case_of(const Algorithm& algorithm, int ranks) {
  return {.collective = algorithm.collective, .ranks = ranks};
}

template <class... Source>
std::string unsafe_loan(const Algorithm& algorithm, const ProofCase& which,
                        const std::vector<int>& windows, const Source&... source) {
  LoanChecker checker;
  WrittenSchedules schedules;
  for (const int window : windows) {
    schedules.write(algorithm, which, window);
    const std::string fault = checker.unsafe_loan(algorithm, which, schedules, source...);
    if (!fault.empty()) return fault;
  }
  return "";
}

TEST(Loans, are_safe_as_they_are_found) {
  for (const Algorithm& algorithm : algorithms()) {
    for (int ranks = 2; ranks <= 9; ++ranks) {
      const ProofCase which = case_of(algorithm, ranks);
      if (!runs_on(algorithm, which)) continue;
      EXPECT_EQ(unsafe_loan(algorithm, which, {1, 4, 15}), "") << algorithm.name << " of " << ranks;
    }
  }
}

TEST(Loans, that_are_not_safe_are_told) {
  const Algorithm& one_shot = *find_algorithm(Collective::kAllReduce, "one_shot");
  EXPECT_EQ(unsafe_loan(one_shot, case_of(one_shot, 2), {1}, all_in_place),
            "rank 1 lends input 0 to rank 0 in step 0, and in place writes over it in step 3, "
            "perhaps before it is taken");
  for (const char* name : {"direct", "pairwise"}) {
    const Algorithm& algorithm = *find_algorithm(Collective::kAllToAll, name);
    for (int ranks = 2; ranks <= 9; ++ranks) {
      EXPECT_NE(unsafe_loan(algorithm, case_of(algorithm, ranks), {1, 4}, all_in_place), "")
          << name;
    }
  }
}

// A direct all-reduce in which ranks give away their sum before they take anybody's part.
TEST(Loans, that_are_taken_too_late_are_told) {
  const Algorithm& direct = *find_algorithm(Collective::kAllReduce, "direct");
  const ProofCase which = case_of(direct, 4);
  EXPECT_EQ(unsafe_loan(direct, which, {1}, all_in_place), "");
  Algorithm hasty = direct;
  hasty.steps = [](Place at) -> Steps {
    for (int i = 1; i < at.ranks; ++i) co_yield {.src = output(at.rank), .send_to = at.after(i)};
    for (int i = 1; i < at.ranks; ++i) co_yield {.src = input(at.after(i)), .send_to = at.after(i)};
    for (int i = 1; i < at.ranks; ++i)
      co_yield {.recv_from = at.after(-i), .dst = output(at.after(-i))};
    for (int i = 1; i < at.ranks; ++i) co_yield {.recv_from = at.after(i), .dst = scratch(i)};
  };
  EXPECT_NE(unsafe_loan(hasty, which, {1}, all_in_place), "");
  EXPECT_EQ(unsafe_loan(hasty, which, {1}), "");  // and are not found to be safe
}

// Of three ranks that give each other what a step of theirs writes over.
std::string fault_of_hasty(Collective collective, Steps (*steps)(Place)) {
  Algorithm hasty = *find_algorithm(collective, "direct");
  hasty.steps = steps;
  return unsafe_loan(hasty, case_of(hasty, 3), {1}, all_in_place);
}

bool is_last(const Place& at) { return at.rank + 1 == at.ranks; }

// In place, a rank's part is its own of the longer buffer: what lies elsewhere is not written over.
TEST(Loans, of_parts_lie_where_parts_do) {
  EXPECT_EQ(fault_of_hasty(Collective::kAllGather,
                           [](Place at) -> Steps {
                             co_yield {.src = input(0), .send_to = at.after(1)};
                             co_yield {.recv_from = at.after(-1),
                                       .dst = output(is_last(at) ? 2 : at.after(1))};
                           }),
            "rank 2 lends input 0 to rank 0 in step 0, and in place writes over it in step 1, "
            "perhaps before it is taken");
  EXPECT_EQ(fault_of_hasty(Collective::kReduceScatter,
                           [](Place at) -> Steps {
                             co_yield {.src = input(is_last(at) ? 2 : at.after(1)),
                                       .send_to = at.after(1)};
                             co_yield {.recv_from = at.after(-1), .dst = output(0)};
                           }),
            "rank 2 lends input 2 to rank 0 in step 0, and in place writes over it in step 1, "
            "perhaps before it is taken");
}

// The fault found of asking for one result more, which the algorithm's ranks send back or not.
std::string fault_of_wanting(const Algorithm& algorithm, int ranks, std::size_t step,
                             Chunk returned) {
  return unsafe_loan(
      algorithm, case_of(algorithm, ranks), {1},
      [=](const Algorithm& of, const Place& at, const Schedule& mine, const TrafficOf& traffic_of) {
        std::vector<Lending> found = lendings(of, at, mine, traffic_of);
        for (Lending& each : found) each.returned = {};
        if (at.rank == 0) found[step].returned = returned;
        return found;
      });
}

TEST(Loans, ask_for_results_that_only_come_back_there) {
  const Algorithm& ring = *find_algorithm(Collective::kAllReduce, "ring");
  EXPECT_EQ(fault_of_wanting(ring, 2, 0, output(1)), "");
  EXPECT_NE(fault_of_wanting(ring, 2, 0, output(0)), "") << "it is kept elsewhere";
  EXPECT_NE(fault_of_wanting(ring, 2, 1, output(1)), "") << "it is not sent back";
  EXPECT_NE(fault_of_wanting(ring, 3, 0, output(1)), "") << "it goes to another rank";
}

// Both ranks sum a half and swap the sums; `before` is done by each first, `after` between.
template <int kVariant>
Steps swapped_halves(Place at) {
  const int peer = at.after(1);
  if (kVariant == 1) co_yield {.src = input(peer), .dst = scratch(0)};  // before
  co_yield {.src = input(peer), .send_to = peer};
  if (kVariant == 2) co_yield {.src = input(peer), .dst = scratch(0)};  // meanwhile
  if (kVariant == 3) co_yield {.src = output(peer), .dst = scratch(0)};
  co_yield {.recv_from = peer, .src = input(at.rank), .dst = output(at.rank), .send_to = peer};
  if (kVariant == 4) {
    co_yield {.recv_from = peer, .src = input(peer), .dst = output(peer)};
  } else {
    co_yield {.recv_from = peer, .dst = output(peer)};
  }
}

TEST(Loans, ask_for_results_where_nobody_else_looks) {
  Algorithm swapped = *find_algorithm(Collective::kAllReduce, "ring");
  const auto fault = [&](Steps (*steps)(Place), std::size_t lent_at) {
    swapped.steps = steps;
    return fault_of_wanting(swapped, 2, lent_at, output(1));
  };
  EXPECT_EQ(fault(&swapped_halves<0>, 0), "");
  EXPECT_EQ(fault(&swapped_halves<1>, 1),
            "rank 0 asks rank 1 in step 1 to put a result into output 1, while step 0 reads what "
            "lies there in place");
  EXPECT_NE(fault(&swapped_halves<2>, 0), "");
  EXPECT_NE(fault(&swapped_halves<3>, 0), "");
  EXPECT_NE(fault(&swapped_halves<4>, 0), "");
}

// The fault found of asking for an exchange, as the algorithm's ranks make it or not.
std::string fault_of_exchange(Steps (*steps)(Place), std::size_t step, Chunk exchanged) {
  Algorithm swapped = *find_algorithm(Collective::kAllGather, "direct");
  if (steps != nullptr) swapped.steps = steps;
  return unsafe_loan(
      swapped, case_of(swapped, 2), {1},
      [=](const Algorithm& of, const Place& at, const Schedule& mine, const TrafficOf& traffic_of) {
        std::vector<Lending> found = lendings(of, at, mine, traffic_of);
        for (Lending& each : found) each.exchanged = {};
        if (at.rank == 0) found[step].exchanged = exchanged;
        return found;
      });
}

// Two ranks swap their parts; some do something else as well.
enum class Swap : std::uint8_t {
  kPlainly,
  kAndReadWhatCame,
  kAndReadTheirOwn,
  kAndWriteTheirOwnTwice,
  kTakingBefore,
  kTakingMore,
  kOfOutput,
};
template <Swap kSwap>
Steps swapped_parts(Place at) {
  const int peer = at.after(1);
  const Step keeps{.recv_from = peer, .dst = output(peer)};
  const Step gives{.src = input(0), .dst = output(at.rank), .send_to = peer};
  const Step gives_more{.src = input(0), .send_to = peer};
  if (kSwap == Swap::kTakingBefore && at.rank == 1) {
    co_yield keeps;
    co_yield gives;
    co_return;
  }
  if (kSwap == Swap::kTakingMore) co_yield gives_more;
  if (kSwap == Swap::kOfOutput && at.rank == 1) {
    co_yield {.src = input(0), .dst = output(1)};
    co_yield {.src = output(1), .send_to = peer};
  } else {
    co_yield gives;
  }
  if (kSwap == Swap::kAndReadTheirOwn) co_yield {.src = output(at.rank), .dst = scratch(0)};
  if (kSwap == Swap::kAndWriteTheirOwnTwice) co_yield {.src = input(0), .dst = output(at.rank)};
  if (kSwap == Swap::kTakingMore) co_yield {.recv_from = peer, .dst = scratch(0)};
  co_yield keeps;
  if (kSwap == Swap::kAndReadWhatCame) co_yield {.src = output(peer), .dst = scratch(0)};
}

TEST(Loans, are_exchanged_by_who_only_swaps) {
  EXPECT_EQ(fault_of_exchange(nullptr, 0, output(1)), "");
  EXPECT_EQ(fault_of_exchange(&swapped_parts<Swap::kPlainly>, 0, output(1)), "");
  EXPECT_NE(fault_of_exchange(nullptr, 0, output(0)), "") << "it does not come there";
  const auto fault = [](Steps (*steps)(Place), std::size_t lent_at) {
    return fault_of_exchange(steps, lent_at, output(1));
  };
  EXPECT_EQ(fault(&swapped_parts<Swap::kAndReadWhatCame>, 0),
            "rank 0 asks rank 1 in step 0 to put its part into output 1, and reads output 1 in "
            "step 2");
  EXPECT_NE(fault(&swapped_parts<Swap::kAndReadTheirOwn>, 0), "");
  EXPECT_NE(fault(&swapped_parts<Swap::kAndWriteTheirOwnTwice>, 0), "");
  EXPECT_NE(fault(&swapped_parts<Swap::kTakingBefore>, 0), "");
  EXPECT_NE(fault(&swapped_parts<Swap::kTakingMore>, 1), "");
  EXPECT_NE(fault(&swapped_parts<Swap::kOfOutput>, 0), "");
}

TEST(Loans, are_judged_alike_by_a_checker_that_has_judged_others) {
  const Algorithm& one_shot = *find_algorithm(Collective::kAllReduce, "one_shot");
  const Algorithm& direct = *find_algorithm(Collective::kAllReduce, "direct");
  LoanChecker checker;
  WrittenSchedules schedules;
  for (const int ranks : {9, 2, 5}) {
    for (const Algorithm* algorithm : {&direct, &one_shot, &direct}) {
      const ProofCase which = case_of(*algorithm, ranks);
      schedules.write(*algorithm, which, 1);
      EXPECT_EQ(checker.unsafe_loan(*algorithm, which, schedules, all_in_place),
                unsafe_loan(*algorithm, which, {1}, all_in_place))
          << algorithm->name << " of " << ranks;
    }
  }
}

TEST(WrittenSchedules, are_what_the_algorithm_yields) {
  const Algorithm& ring = *find_algorithm(Collective::kAllGather, "ring");
  WrittenSchedules schedules;
  for (const int ranks : {7, 3}) {
    const ProofCase which = case_of(ring, ranks);
    schedules.write(ring, which, 2);
    for (int rank = 0; rank < ranks; ++rank) {
      Place at = place_of(which, rank);
      at.window = 2;
      EXPECT_EQ(schedules.of(rank).steps, schedule_of(ring, at).steps);
      std::vector<Step> given;
      for (const Step& step : schedules.source().steps(at)) given.push_back(step);
      EXPECT_EQ(given, schedules.of(rank).steps);
      const int next = (rank + 1) % ranks;
      EXPECT_EQ(schedules.traffic_of(rank).sends_to(next).size(),
                static_cast<std::size_t>(ranks - 1));
    }
  }
}

}  // namespace
}  // namespace catenary::proof
