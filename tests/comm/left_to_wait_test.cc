// What is left of operations that have begun at once, and have to wait for a message.
#include <chrono>

#include "tests/comm/watched_ranks.h"

namespace catenary {
namespace {

using OperationsLeftToWait = WatchedRanks;

// Who comes first sends at once and waits; who comes second finds all there. (The device's own
// thread may drive meanwhile, and have a run made.)
TEST_F(OperationsLeftToWait, begin_although_they_must_wait) {
  const auto exchange = seen_in([&] {
    submit(0, Collective::kAllReduce);
    EXPECT_FALSE(stream(0).idle());
    submit(1, Collective::kAllReduce);
    EXPECT_TRUE(stream(1).idle());
  });
  EXPECT_GE(exchange[0].quiet, 1);
  expect_all_quiet(exchange[1], 2);
  synchronize();
  EXPECT_EQ(seen[0].quiet + seen[0].loud, 2) << "it was sent again, or nothing was taken";
  EXPECT_GE(seen[0].rung, seen[0].quiet);
  EXPECT_EQ(got[0][7], std::byte{3});
  EXPECT_EQ(got[1][7], std::byte{3});
}

// The slow look puts a run in its place, which goes on where it was; it is there again for the
// next.
TEST_F(OperationsLeftToWait, may_wait_for_long) {
  for (int round = 0; round < 6; ++round) {
    const auto value = static_cast<std::byte>(round + 10);
    given[0].assign(given[0].size(), value);
    const auto operation = [&](std::size_t rank) {
      if (round % 3 == 0) return submit(rank, Collective::kBroadcast);
      if (round % 3 == 1) return submit(rank, Collective::kAllReduce);
      submit_message(rank, rank == 0);
    };
    operation(1);
    for (Seen& each : seen) each.loud = 0;
    std::thread waiting([&] { stream(1).synchronize(); });
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    EXPECT_FALSE(stream(1).idle());
    operation(0);
    waiting.join();
    EXPECT_EQ(seen[1].loud, 1) << "no run was made, or it has sent again";
    EXPECT_EQ(got[1][7], round % 3 == 1 ? static_cast<std::byte>(round + 12) : value);
    synchronize();
    submit_exchange(0);
    submit_exchange(1);
    synchronize();
    EXPECT_EQ(got[0][7], std::byte{2});
  }
  EXPECT_FALSE(ranks[0]->failure() || ranks[1]->failure());
}

// Of different lengths and kinds in turn: what is left of one does not take what belongs to
// another.
TEST_F(OperationsLeftToWait, leave_behind_what_is_theirs) {
  for (std::size_t round = 0; round < 60; ++round) {
    const auto value = static_cast<std::byte>(round);
    const std::size_t count = round % 4 == 3 ? 1000 : 8 * (round % 3 + 1);
    given[0].assign(given[0].size(), value);
    given[1].assign(given[1].size(), std::byte{1});
    const auto kind = round % 2 == 0 ? Collective::kBroadcast : Collective::kAllReduce;
    submit(1, kind, count);
    submit_message(1, false, 5);
    submit(0, kind, count);
    synchronize_one(0);
    submit_message(0, true, 5);
    synchronize();
    const auto sum = static_cast<std::byte>(round + 1);
    ASSERT_EQ(got[1][count - 1], round % 2 == 0 ? value : sum);
    ASSERT_EQ(got[1][0], value) << "the message came first, or not at all";
  }
  EXPECT_FALSE(ranks[0]->failure() || ranks[1]->failure());
}

TEST_F(OperationsLeftToWait, that_wait_and_do_not_agree_fail) {
  submit(1, Collective::kBroadcast);
  submit(0, Collective::kBroadcast);
  synchronize();
  submit(1, Collective::kBroadcast);
  submit(0, Collective::kBroadcast, 9);
  stream(1).synchronize();
  expect_disagreement(1, "count 9", "count 8");
}

TEST_F(OperationsLeftToWait, that_wait_for_a_message_and_get_another_fail) {
  submit_message(1, false);
  submit_message(0, true);
  synchronize();
  submit_message(1, false);
  submit_message(0, true, 9);
  stream(1).synchronize();
  expect_disagreement(1, "count 9", "count 8");
}

TEST_F(OperationsLeftToWait, end_when_they_are_aborted) {
  submit(1, Collective::kBroadcast);
  submit(0, Collective::kBroadcast);
  synchronize();
  submit(1, Collective::kBroadcast);
  ranks[1]->abort();
  stream(1).synchronize();
  EXPECT_TRUE(ranks[1]->known_failure());
}

// More kinds and lengths than a communicator remembers, each of which is left waiting.
TEST_F(OperationsLeftToWait, need_nobody_to_remember_them) {
  for (std::size_t count = 1; count <= 40; ++count) {
    submit(1, Collective::kAllReduce, count);
    for (std::size_t later = 1; later <= 10; ++later)
      submit(1, Collective::kAllReduce, 100 + later);
    submit(0, Collective::kAllReduce, count);
    for (std::size_t later = 1; later <= 10; ++later)
      submit(0, Collective::kAllReduce, 100 + later);
    synchronize();
    ASSERT_EQ(got[1][count - 1], std::byte{3});
  }
  EXPECT_FALSE(ranks[0]->failure() || ranks[1]->failure());
}

TEST_F(OperationsLeftToWait, that_wait_fail_with_what_a_link_throws) {
  submit(1, Collective::kBroadcast);
  submit(0, Collective::kBroadcast);
  synchronize();
  submit(1, Collective::kBroadcast);
  seen[1].fails = true;
  stream(1).synchronize();
  expect_dead_line(1);
}

}  // namespace
}  // namespace catenary
