// What a run does with loans: gives them where it may, reads them where they lie, and neither
// trusts what was withdrawn nor leaves anything lent behind.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "src/base/error.h"
#include "src/engine/group_run.h"
#include "tests/engine/fake_links.h"

namespace catenary {
namespace {

Descriptor bytes_of(Collective kind) {
  Descriptor descriptor;
  descriptor.kind = kind;
  descriptor.count = kCount;
  return descriptor;
}

struct Fixture : testing::Test {
  RunSpec spec_of(Collective kind) {
    RunSpec spec;
    spec.plan = &plan;
    spec.input = given.data();
    spec.output = taken.data();
    spec.slicing = Slicing(Partition::split(kCount, 1, 1), 65536, 4);
    spec.descriptor = bytes_of(kind);
    spec.least_loan = kLeastLoan;
    return spec;
  }
  void plan_send(bool in_place = true) {
    plan.steps = {{.send = &send,
                   .src = input(0),
                   .extent = input(0),
                   .lending = {input(0), in_place},
                   .send_to = 1,
                   .opens_send = true}};
    plan.sends = {{&send, 1}};
  }
  void plan_recv() {
    plan.steps = {
        {.recv = &recv, .dst = output(0), .extent = output(0), .recv_from = 1, .opens_recv = true}};
    const Descriptor theirs = bytes_of(Collective::kBroadcast);
    const Loan loan{0, kCount};
    recv.message.resize(sizeof theirs + sizeof loan);
    std::memcpy(recv.message.data(), &theirs, sizeof theirs);
    std::memcpy(recv.message.data() + sizeof theirs, &loan, sizeof loan);
  }

  FakeSend send;
  FakeRecv recv;
  Plan plan;
  Bytes given = Bytes(kCount, std::byte{1});
  Bytes taken = Bytes(kCount, std::byte{2});
};
using Loans = Fixture;

TEST_F(Loans, are_given_instead_of_bytes_and_waited_for) {
  plan_send();
  ScheduleRun run(spec_of(Collective::kBroadcast));
  EXPECT_EQ(run.advance(), Task::Progress::kSome);
  EXPECT_EQ(send.lent, given.data());
  EXPECT_EQ(send.committed, sizeof(Descriptor) + sizeof(Loan));
  EXPECT_TRUE(run.only_waits_to_be_taken());
  EXPECT_EQ(run.advance(), Task::Progress::kNone);
  send.lent = nullptr;
  EXPECT_EQ(run.advance(), Task::Progress::kDone);
}

TEST_F(Loans, are_not_given_of_little_or_where_input_is_written_over) {
  plan_send(/*in_place=*/false);
  RunSpec spec = spec_of(Collective::kBroadcast);
  spec.in_place = true;
  EXPECT_EQ(ScheduleRun(spec).advance(), Task::Progress::kDone);
  spec.in_place = false;
  spec.least_loan = kCount + 1;
  EXPECT_EQ(ScheduleRun(spec).advance(), Task::Progress::kDone);
  EXPECT_EQ(send.lent, nullptr);
}

// What is kept and handed on: the peer need not wait until we have our own copy.
TEST_F(Loans, of_input_go_before_the_own_copy_is_made) {
  plan_send();
  plan.steps[0].dst = output(0);
  send.watched = taken.data();
  ScheduleRun run(spec_of(Collective::kBroadcast));
  run.advance();
  EXPECT_EQ(send.lent, given.data());
  EXPECT_EQ(send.watched_at_commit, std::byte{2}) << "the copy was there already";
  EXPECT_EQ(taken, given);
}

TEST_F(Loans, are_of_the_copy_where_input_cannot_be_mapped) {
  plan_send();
  plan.steps[0].dst = output(0);
  send.unmapped = given.data();
  send.watched = taken.data();
  ScheduleRun run(spec_of(Collective::kBroadcast));
  run.advance();
  EXPECT_EQ(send.lent, taken.data());
  EXPECT_EQ(send.watched_at_commit, std::byte{1}) << "it was lent before it was there";
}

TEST_F(Loans, are_read_where_they_lie) {
  plan_recv();
  EXPECT_EQ(ScheduleRun(spec_of(Collective::kBroadcast)).advance(), Task::Progress::kDone);
  EXPECT_EQ(taken, recv.memory);
  EXPECT_TRUE(recv.released);
}

TEST_F(Loans, that_were_withdrawn_end_the_operation) {
  plan_recv();
  recv.withdrawn = true;
  try {
    ScheduleRun(spec_of(Collective::kBroadcast)).advance();
    FAIL() << "what may be torn was taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kRemote);
  }
  EXPECT_FALSE(recv.released);
}

TEST_F(Loans, of_the_wrong_length_are_refused) {
  plan_recv();
  const Loan loan{0, kCount - 1};
  std::memcpy(recv.message.data() + sizeof(Descriptor), &loan, sizeof loan);
  EXPECT_THROW(ScheduleRun(spec_of(Collective::kBroadcast)).advance(), Error);
}

TEST_F(Loans, are_withdrawn_when_an_operation_is_given_up) {
  plan_send();
  Turn turn;
  GroupRun group;
  FakeOwner owner;
  group.begin(owner);
  const RunSpec spec = spec_of(Collective::kBroadcast);
  group.add(spec, spec.input, spec.output, turn, turn.take(), 1);
  EXPECT_EQ(group.poll(), Task::Progress::kSome);
  EXPECT_FALSE(send.withdrawn);
  group.recycle();
  EXPECT_TRUE(send.withdrawn);
}

}  // namespace
}  // namespace catenary
