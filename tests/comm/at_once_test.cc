// What communicators do at once, seen from their links, and what becomes of what cannot be done so.
#include <algorithm>

#include "src/device/memory.h"
#include "tests/comm/watched_ranks.h"

namespace catenary {
namespace {

using OperationsAtOnce = WatchedRanks;

TEST_F(OperationsAtOnce, are_over_when_the_call_returns) {
  const auto broadcast = seen_in([&] {
    submit(0, Collective::kBroadcast);
    submit(1, Collective::kBroadcast);
  });
  expect_all_quiet(broadcast[0], 1);
  expect_all_quiet(broadcast[1], 1);
  EXPECT_TRUE(stream(0).idle() && stream(1).idle());
  EXPECT_EQ(got[1][7], std::byte{1});
  EXPECT_EQ(got[1][8], std::byte{0});

  const auto reduce = seen_in([&] {
    submit(1, Collective::kReduce);
    submit(0, Collective::kReduce);
  });
  expect_all_quiet(reduce[0], 1);
  expect_all_quiet(reduce[1], 1);
  EXPECT_TRUE(stream(0).idle() && stream(1).idle());
  EXPECT_EQ(got[0][7], std::byte{3});
}

TEST_F(OperationsAtOnce, are_sends_and_receives_too) {
  const auto message = seen_in([&] {
    submit_message(0, true);
    submit_message(1, false);
  });
  expect_all_quiet(message[0], 1);
  expect_all_quiet(message[1], 1);
  EXPECT_TRUE(stream(0).idle() && stream(1).idle());
  EXPECT_EQ(got[1][7], std::byte{1});
}

// What is as long as that is lent, if it can be.
TEST_F(OperationsAtOnce, copy_eight_kilobytes_that_nobody_can_map) {
  constexpr std::size_t kBytes = 8192;
  const auto copied = seen_in([&] {
    submit(0, Collective::kBroadcast, kBytes);
    submit(1, Collective::kBroadcast, kBytes);
    submit_message(0, true, kBytes);
    submit_message(1, false, kBytes);
  });
  expect_all_quiet(copied[0], 2);
  expect_all_quiet(copied[1], 2);

  std::byte* const mapped = Memory::process().allocate(kBytes, MemoryKind::kDevice, 0);
  std::fill_n(mapped, kBytes, std::byte{7});
  const auto lent = seen_in([&] {
    submit(0, Collective::kAllReduce, kBytes, mapped);
    submit(1, Collective::kAllReduce, kBytes);
  });
  EXPECT_EQ(lent[0].quiet, 0);
  synchronize();
  EXPECT_EQ(got[1][kBytes - 1], std::byte{9});
  const auto message = seen_in([&] {
    submit_message(0, true, kBytes, mapped);
    submit_message(1, false, kBytes);
  });
  EXPECT_EQ(message[0].quiet, 0);
  synchronize();
  EXPECT_EQ(got[1][kBytes - 1], std::byte{7});
  Memory::process().free(mapped, MemoryKind::kDevice);
}

// Who lends waits for the reader, which is for who waits anyway.
TEST_F(OperationsAtOnce, copy_what_they_could_lend_unless_each_is_waited_for) {
  constexpr std::size_t kBytes = 8192;
  std::byte* const mapped = Memory::process().allocate(kBytes, MemoryKind::kDevice, 0);
  std::fill_n(mapped, kBytes, std::byte{7});
  const std::function<void()> kinds[] = {[&] {
                                           submit(0, Collective::kBroadcast, kBytes, mapped);
                                           submit(1, Collective::kBroadcast, kBytes);
                                         },
                                         [&] {
                                           submit_message(0, true, kBytes, mapped);
                                           submit_message(1, false, kBytes);
                                         }};
  for (const auto& send : kinds) {
    const auto copies_sent = [&] {
      synchronize();
      forget_all();
      got[1][kBytes - 1] = std::byte{0};
      send();
      const int copies = seen[0].quiet;
      synchronize();
      EXPECT_EQ(got[1][kBytes - 1], std::byte{7});
      return copies;
    };
    send();
    send();
    EXPECT_EQ(copies_sent(), 1) << "it did not wait for the last but one";
    EXPECT_EQ(copies_sent(), 0);
    EXPECT_EQ(copies_sent(), 0);
  }
  Memory::process().free(mapped, MemoryKind::kDevice);
}

// Who finds nothing wakes nobody.
TEST_F(OperationsAtOnce, ring_for_what_they_have_done) {
  seen_in([&] {
    submit_message(1, false);
    EXPECT_EQ(seen[1].rung, 0);
    submit_message(0, true);
    EXPECT_EQ(seen[0].rung, seen[0].quiet);
  });
}

// In whatever order the group has them.
TEST_F(OperationsAtOnce, are_groups_of_a_send_and_a_receive_too) {
  for (const bool send_first : {true, false}) {
    got = {Bytes(20'000), Bytes(20'000)};
    const auto exchange = seen_in([&] {
      submit_exchange(0, send_first);
      EXPECT_FALSE(stream(0).idle());
      submit_exchange(1, send_first);
      EXPECT_TRUE(stream(1).idle());
    });
    EXPECT_GE(exchange[0].quiet, 1);
    EXPECT_GE(exchange[0].rung, 1);
    expect_all_quiet(exchange[1], 2);
    synchronize();
    EXPECT_EQ(seen[0].quiet + seen[0].loud, 2) << "it was sent again, or nothing was taken";
    EXPECT_EQ(got[0][7], std::byte{2});
    EXPECT_EQ(got[1][7], std::byte{1});
  }
}

// As many as a link holds are sent ahead; the group finds nothing before it, but no room, and waits
// with both.
TEST_F(OperationsAtOnce, wait_for_room_in_groups_too) {
  submit_exchange(0);
  submit_exchange(1);
  synchronize();
  for (int i = 0; i < config.slots; ++i) submit_message(0, true);
  EXPECT_TRUE(stream(0).idle());
  given[0][7] = std::byte{9};
  submit_exchange(0);
  EXPECT_FALSE(stream(0).idle());
  for (int i = 0; i < config.slots; ++i) submit_message(1, false);
  submit_exchange(1);
  synchronize();
  EXPECT_EQ(got[0][7], std::byte{2});
  EXPECT_EQ(got[1][7], std::byte{9}) << "the group has overtaken what was before it";
  EXPECT_FALSE(ranks[0]->failure() || ranks[1]->failure());
}

// What is one message on one stream is; what is not has a run.
TEST_F(OperationsAtOnce, are_only_some_of_the_groups_of_two) {
  submit_exchange(0);
  submit_exchange(1);
  synchronize();
  const auto submit_pair = [&](std::size_t rank, MessageRequest send, MessageRequest receive) {
    const std::array<MessageRequest, 2> both{send, receive};
    ranks[rank]->submit({.operations = {}, .messages = both});
  };
  const auto request = [&](std::size_t rank, bool sends, std::size_t count, std::size_t peer,
                           Stream& on) {
    return MessageRequest{.buffer = sends ? given[rank].data() : got[rank].data(),
                          .count = count,
                          .stream = &on,
                          .peer = static_cast<int>(peer),
                          .sends = sends};
  };
  const auto expect_runs = [&](const char* what) {
    synchronize();
    for (const Seen& each : seen) EXPECT_EQ(each.quiet, 0) << what;
    forget_all();
  };
  synchronize();
  forget_all();
  for (const bool long_send : {true, false}) {
    for (const std::size_t rank : {0u, 1u}) {
      const bool is_long = long_send == (rank == 0);
      submit_pair(rank, request(rank, true, is_long ? 20'000 : 8, 1 - rank, stream(rank)),
                  request(rank, false, is_long ? 8 : 20'000, 1 - rank, stream(rank)));
    }
    expect_runs("one is long");
    EXPECT_EQ(got[long_send ? 1 : 0][19'999], given[long_send ? 0 : 1][0]);
  }
  Stream& aside = ranks[0]->device().create_inner_stream();
  submit_pair(0, request(0, true, 8, 1, stream(0)), request(0, false, 8, 1, aside));
  submit_pair(1, request(1, true, 8, 0, stream(1)), request(1, false, 8, 0, stream(1)));
  aside.synchronize();
  synchronize();
  EXPECT_EQ(seen[0].quiet, 0) << "two streams";
  ranks[0]->device().retire(aside);
  forget_all();
  submit_pair(0, request(0, true, 8, 0, stream(0)), request(0, false, 8, 0, stream(0)));
  expect_runs("to oneself");
  EXPECT_EQ(got[0][7], std::byte{1});
}

TEST_F(OperationsAtOnce, keep_their_order_with_what_needs_a_run) {
  for (std::size_t round = 0; round < 50; ++round) {
    const std::size_t count = round % 3 == 1 ? 20'000 : 8 + round % 5;
    const auto value = static_cast<std::byte>(round);
    given[0].assign(given[0].size(), value);
    const bool sender_first = round % 2 == 0;
    submit_message(sender_first ? 0 : 1, sender_first, count);
    submit_message(sender_first ? 1 : 0, !sender_first, count);
    submit(0, Collective::kBroadcast, 4);
    submit(1, Collective::kBroadcast, 4);
    synchronize();
    ASSERT_EQ(got[1][0], value);
    ASSERT_EQ(got[1][count - 1], value);
  }
  EXPECT_FALSE(ranks[0]->failure() || ranks[1]->failure());
}

TEST_F(OperationsAtOnce, that_do_not_agree_fail_in_the_call) {
  submit(0, Collective::kBroadcast);
  submit(1, Collective::kBroadcast);
  synchronize();
  submit(0, Collective::kBroadcast);
  submit(1, Collective::kBroadcast, 9);
  expect_disagreement(1, "count 9", "count 8");
}

TEST_F(OperationsAtOnce, of_groups_that_do_not_agree_fail_in_the_call) {
  submit_exchange(0);
  submit_exchange(1);
  synchronize();
  submit_exchange(0);
  submit_exchange(1, true, 9);
  expect_disagreement(1, "count 9", "count 8");
}

struct PolledOperations : WatchedRanks {
  PolledOperations() : WatchedRanks(false) {}
};

// Only a poll of all might bring in what they wait for.
TEST_F(PolledOperations, have_runs) {
  const auto broadcast = seen_in([&] {
    submit(0, Collective::kBroadcast);
    submit(1, Collective::kBroadcast);
    submit_message(0, true);
    submit_message(1, false);
    submit_exchange(0);
    submit_exchange(1);
    synchronize();
  });
  for (const Counts& of : broadcast) {
    EXPECT_EQ(of.quiet, 0);
    EXPECT_EQ(of.loud, 4);
  }
}

// As a run tells it: links that have thrown are not used again, and what failed is the
// communicator's failure.

TEST_F(OperationsAtOnce, fail_with_what_a_link_throws) {
  submit(0, Collective::kAllReduce);
  submit(1, Collective::kAllReduce);
  synchronize();
  seen[0].forget();
  seen[0].fails = true;
  submit(0, Collective::kAllReduce);
  stream(0).synchronize();
  expect_dead_line(0);
  EXPECT_GE(seen[0].rung, 1) << "who was sent something sleeps on";
}

TEST_F(OperationsAtOnce, fail_with_what_the_link_of_a_message_throws) {
  submit_message(1, true);
  submit_message(0, false);
  synchronize();
  seen[0].fails = true;
  submit_message(0, false);
  stream(0).synchronize();
  expect_dead_line(0);
}

// What was sent before that is not sent again.
TEST_F(OperationsAtOnce, of_groups_fail_with_what_a_link_throws) {
  submit_exchange(1);
  submit_exchange(0);
  synchronize();
  seen[0].forget();
  seen[0].fails = true;
  submit_exchange(0);
  stream(0).synchronize();
  expect_dead_line(0);
  EXPECT_EQ(seen[0].quiet, 1);
  EXPECT_GE(seen[0].rung, 1) << "who was sent something sleeps on";
  EXPECT_EQ(seen[0].loud, 0);
}

}  // namespace
}  // namespace catenary
