// Two ranks that hand on what they keep: each puts its part into both outputs, if both can and it
// pays, and else takes the other's as ever.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "src/base/error.h"
#include "tests/engine/fake_links.h"

namespace catenary {
namespace {

// An AllGather of rank 0 of two: its part is of 1s, and what it would read of the peer's of 3s.
struct Exchange : testing::Test {
  Exchange() {
    plan.chunk_count = 2;
    plan.steps = {{.send = &send,
                   .src = input(0),
                   .dst = output(0),
                   .extent = output(0),
                   .lending = {input(0), true, {}, output(1)},
                   .send_to = 1,
                   .exchanges_on = &recv,
                   .for_good = true,
                   .opens_send = true},
                  {.recv = &recv,
                   .dst = output(1),
                   .extent = output(1),
                   .recv_from = 1,
                   .for_good = true,
                   .opens_recv = true}};
    plan.sends = {{&send, 1}};
    spec.plan = &plan;
    spec.input = given.data();
    spec.output = taken.data();
    spec.slicing = Slicing(partition_for(Collective::kAllGather, kCount, 1, 2), 65536, 4);
    spec.descriptor.kind = Collective::kAllGather;
    spec.descriptor.count = kCount;
    spec.least_loan = kLeastLoan;
    spec.past_caches = true;
  }
  void lend(Loan loan) {
    recv.message.resize(sizeof spec.descriptor + sizeof loan);
    std::memcpy(recv.message.data(), &spec.descriptor, sizeof spec.descriptor);
    std::memcpy(recv.message.data() + sizeof spec.descriptor, &loan, sizeof loan);
  }
  // In this order, for the two halves of output.
  Bytes halves(int first, int second) const {
    Bytes both(kCount, static_cast<std::byte>(first));
    both.resize(2 * kCount, static_cast<std::byte>(second));
    return both;
  }
  // Runs it to its end with a peer that does its part and takes ours.
  void run_to_end() {
    ScheduleRun run(spec);
    run.advance();
    send.lent = nullptr;
    EXPECT_EQ(run.advance(), Task::Progress::kDone);
  }
  void expect_taken_as_ever() {
    EXPECT_EQ(taken, halves(1, 3));
    EXPECT_EQ(recv.result, Bytes(kCount, std::byte{9})) << "something was put there";
  }

  FakeSend send;
  FakeRecv recv;
  Plan plan;
  RunSpec spec;
  Bytes given = Bytes(kCount, std::byte{1});
  Bytes taken = halves(2, 2);
};

TEST_F(Exchange, puts_ones_part_into_both_outputs_and_waits_for_the_peer_to_do_so) {
  ScheduleRun run(spec);
  EXPECT_EQ(run.advance(), Task::Progress::kSome);
  EXPECT_EQ(send.lent, given.data());
  EXPECT_EQ(send.wanted_at, taken.data() + kCount);
  EXPECT_EQ(taken, halves(2, 2)) << "our part was kept before it was known how";
  lend({0, kCount, 0});
  EXPECT_EQ(run.advance(), Task::Progress::kSome);
  EXPECT_EQ(taken, halves(1, 2)) << "the peer's part is the peer's to put there";
  EXPECT_EQ(recv.result, given);
  EXPECT_TRUE(recv.released);
  EXPECT_FALSE(recv.writes);
  EXPECT_EQ(run.advance(), Task::Progress::kNone);
  send.lent = nullptr;
  EXPECT_EQ(run.advance(), Task::Progress::kDone);
}

// Whether a loan may be taken whole is asked before it is looked for.
TEST_F(Exchange, is_one_also_of_a_loan_that_comes_between_two_looks) {
  spec.slicing = Slicing(partition_for(Collective::kAllGather, kCount, 1, 2), kCount / 4, 8);
  lend({0, kCount, 0});
  recv.hidden_looks = 1;
  ScheduleRun run(spec);
  run.advance();
  EXPECT_EQ(taken, halves(1, 2)) << "the peer's part is the peer's to put there";
  EXPECT_EQ(recv.result, given);
  EXPECT_EQ(recv.releases, 1);
  EXPECT_TRUE(run.only_waits_to_be_taken());
}

TEST_F(Exchange, is_none_where_the_peer_only_lends) {
  lend({0, kCount});
  run_to_end();
  EXPECT_NE(send.wanted_at, nullptr);
  expect_taken_as_ever();
}

TEST_F(Exchange, is_none_where_the_peer_sends) {
  recv.message.assign(opening_bytes(kCount) + kCount, std::byte{3});
  std::memcpy(recv.message.data(), &spec.descriptor, sizeof spec.descriptor);
  run_to_end();
  expect_taken_as_ever();
}

TEST_F(Exchange, is_not_offered_where_it_does_not_pay_or_cannot_be) {
  const auto expect_no_offer = [&](const char* why) {
    std::ranges::fill(taken, std::byte{2});
    lend({0, kCount, 0});
    ScheduleRun run(spec);
    run.advance();
    EXPECT_EQ(send.wanted_at, nullptr) << why;
    expect_taken_as_ever();
  };
  spec.past_caches = false;
  expect_no_offer("the caches hold it");
  spec.past_caches = true;
  recv.reaches = false;
  expect_no_offer("we could not put ours there");
  recv.reaches = true;
  plan.steps[0].lending.exchanged = {};
  expect_no_offer("the schedule is another");
  plan.steps[0].lending.exchanged = output(1);
  spec.in_place = true;
  given.swap(taken);
  given.resize(kCount, std::byte{1});
  taken = halves(1, 2);
  spec.input = taken.data();
  spec.output = taken.data();
  lend({0, kCount, 0});
  ScheduleRun(spec).advance();
  EXPECT_EQ(send.wanted_at, nullptr) << "it is kept already";
  expect_taken_as_ever();
}

// Such as an AllGatherV has them.
TEST_F(Exchange, is_of_parts_that_are_alike) {
  const UnevenParts uneven{{{0, kCount}}, {{0, kCount}, {kCount, kCount / 2}}};
  spec.slicing = Slicing(Partition::uneven(uneven, 1, 0, 1), 65536, 4);
  lend({0, kCount / 2, 0});
  ScheduleRun(spec).advance();
  EXPECT_EQ(send.wanted_at, nullptr);
  EXPECT_EQ(Bytes(taken.begin(), taken.begin() + kCount), given);
}

TEST_F(Exchange, ends_where_the_peer_gives_up) {
  recv.memory.assign(3 * 65536, std::byte{3});
  recv.withdrawn = true;
  lend({0, kCount, 0});
  EXPECT_THROW(ScheduleRun(spec).advance(), Error);
  EXPECT_EQ(recv.result, Bytes(kCount, std::byte{9})) << "it was written to all the same";
  recv.withdrawn = false;
  recv.after_writing = [this] { recv.withdrawn = true; };
  EXPECT_THROW(ScheduleRun(spec).advance(), Error);
  EXPECT_FALSE(recv.released);
}

// Given up by us, it is over once nobody writes to our output.
TEST_F(Exchange, is_open_to_the_peer) {
  plan.is_open_to_writers = true;
  ScheduleRun run(spec);
  run.advance();
  EXPECT_TRUE(run.is_open_to_writers());
  send.written_to = true;
  EXPECT_EQ(run.writer(), 1);
  run.withdraw();
  EXPECT_TRUE(send.withdrawn);
}

}  // namespace
}  // namespace catenary
