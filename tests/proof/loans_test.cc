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

}  // namespace
}  // namespace catenary::proof
