// Ranks that wait for each other before they leave.
#include <barrier>
#include <chrono>
#include <span>
#include <thread>

#include "src/bootstrap/membership.h"
#include "tests/bootstrap/bootstrap_support.h"

namespace catenary {
namespace {

class SettlingOf : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, SettlingOf, ::testing::Values(1, 2, 8));

// What comes before a step is claimed before it, and taken before the next step.
TEST_P(SettlingOf, ends_when_the_last_one_has_and_all_have_heard_the_others_by_then) {
  const int nranks = GetParam();
  const Config config = loopback();
  const UniqueId id = create_unique_id(config);
  expect_no_errors(run_ranks(nranks, [&](int rank) {
    Membership membership(id, rank, nranks, within_ms(5000), config);
    for (std::uint32_t round = 1; round <= 3; ++round) {
      // All make this claim in the first round, so one is told; then each one its own.
      const auto claim = static_cast<std::uint32_t>(round == 1 ? 1000 : 10 * rank) + round;
      membership.claim(std::as_bytes(std::span(&claim, 1)));
      const bool is_last = rank == static_cast<int>(round) % nranks;
      if (is_last) std::this_thread::sleep_for(std::chrono::milliseconds(20));
      membership.settle(2 * round - 1);
      ASSERT_TRUE(membership.wait_for_settled(2 * round - 1, within_ms(5000)));
      const std::size_t told = membership.take_claims().size();
      if (round == 1) {
        EXPECT_LE(told, 1u);
      } else {
        EXPECT_EQ(told, static_cast<std::size_t>(nranks - 1));
      }
      membership.settle(2 * round);
      ASSERT_TRUE(membership.wait_for_settled(2 * round, within_ms(5000)));
    }
    EXPECT_FALSE(membership.poll().has_value());
  }));
}

TEST(Settling, waits_for_nobody_who_has_left_and_is_no_fault_while_somebody_is_late) {
  const Config config = loopback();
  const UniqueId id = create_unique_id(config);
  std::barrier waited(2);
  expect_no_errors(run_ranks(3, [&](int rank) {
    Membership membership(id, rank, 3, within_ms(5000), config);
    if (rank == 2) return;  // says goodbye
    if (rank == 1) waited.arrive_and_wait();
    membership.settle(1);
    if (rank == 0) {
      EXPECT_FALSE(membership.wait_for_settled(1, within_ms(30)));
      waited.arrive_and_wait();
    }
    EXPECT_TRUE(membership.wait_for_settled(1, within_ms(5000)));
    EXPECT_FALSE(membership.poll().has_value());
    if (rank == 1) return;
    membership.settle(2);  // as the last one that is there
    EXPECT_TRUE(membership.wait_for_settled(2, within_ms(5000)));
  }));
}

TEST(Settling, ends_with_a_fault) {
  const Config config = loopback();
  const UniqueId id = create_unique_id(config);
  std::barrier both(2);
  expect_no_errors(run_ranks(2, [&](int rank) {
    Membership membership(id, rank, 2, within_ms(5000), config);
    both.arrive_and_wait();
    if (rank == 0) {
      membership.settle(1);
      EXPECT_TRUE(membership.wait_for_settled(1, within_ms(5000)));
      EXPECT_TRUE(membership.poll().has_value());
    } else {
      membership.report(Error(ErrorCode::kSystem, "broken"));
    }
    both.arrive_and_wait();  // a goodbye would end the wait as well
  }));
}

TEST(Settling, twice_changes_nothing_and_backwards_ends_the_connection) {
  const Config config = loopback();
  const UniqueId id = create_unique_id(config);
  std::barrier over(2);
  const auto errors = run_ranks(2, [&](int rank) {
    Membership membership(id, rank, 2, within_ms(5000), config);
    membership.settle(2);
    membership.settle(2);
    EXPECT_TRUE(membership.wait_for_settled(2, within_ms(5000)));
    EXPECT_FALSE(membership.poll().has_value());
    over.arrive_and_wait();
    if (rank == 1) membership.settle(1);
    const auto fault = fault_soon(membership);
    over.arrive_and_wait();
    if (fault) throw Error(*fault);
  });
  expect_error(errors[0], ErrorCode::kRemote, "rank 1 (");
}

}  // namespace
}  // namespace catenary
