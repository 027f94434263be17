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
  ScheduleRun run(spec_of(Collective::kAllGather));
  run.advance();
  EXPECT_EQ(send.lent, taken.data());
  EXPECT_EQ(send.watched_at_commit, std::byte{1}) << "it was lent before it was there";
}

// A root is done once it has copied, and so is who has given its chunk to others by the stage.
TEST_F(Loans, are_not_of_the_copy_of_a_root_or_of_what_is_staged) {
  plan_send();
  plan.steps[0].dst = output(0);
  send.unmapped = given.data();
  EXPECT_EQ(ScheduleRun(spec_of(Collective::kBroadcast)).advance(), Task::Progress::kDone);
  EXPECT_EQ(taken, given);
  plan.steps[0].fan_out = FanOut::kOneWay;
  RunSpec staged = spec_of(Collective::kAllGather);
  staged.least_staged = SIZE_MAX;
  EXPECT_EQ(ScheduleRun(staged).advance(), Task::Progress::kDone);
  EXPECT_EQ(send.lent, nullptr);
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

// Four slices of a chunk, in one pass.
RunSpec in_slices(RunSpec spec, std::size_t count = kCount) {
  spec.slicing = Slicing(Partition::split(count, 1, 1), kCount / 4, 8);
  return spec;
}

TEST_F(Loans, of_all_that_is_there_are_one_message) {
  plan_send();
  plan.steps[0].dst = output(0);
  ScheduleRun run(in_slices(spec_of(Collective::kBroadcast)));
  run.advance();
  EXPECT_EQ(send.commits, 1);
  Loan loan;
  std::memcpy(&loan, send.slot.data() + sizeof(Descriptor), sizeof loan);
  EXPECT_EQ(loan.bytes, kCount);
  EXPECT_EQ(taken, given);
}

// A loan says of so little nothing that its length could not say of a message, too.
TEST_F(Loans, have_no_end_that_is_too_short_for_a_loan) {
  plan_send();
  ScheduleRun run(in_slices(spec_of(Collective::kBroadcast), kCount - kLeastLoan / 2));
  run.advance();
  EXPECT_EQ(send.commits, 4);
}

TEST_F(Loans, of_all_that_is_there_are_kept_at_once) {
  plan_recv();
  EXPECT_EQ(ScheduleRun(in_slices(spec_of(Collective::kBroadcast))).advance(),
            Task::Progress::kDone);
  EXPECT_EQ(taken, recv.memory);
  EXPECT_EQ(recv.releases, 1);
}

TEST_F(Loans, of_all_that_is_there_are_passed_on_slice_by_slice) {
  plan_recv();
  for (std::size_t i = 0; i < kCount; ++i) recv.memory[i] = static_cast<std::byte>(i / 512);
  plan.steps[0].send = &send;
  plan.steps[0].send_to = 2;
  plan.steps[0].opens_send = true;
  plan.sends = {{&send, 2}};
  EXPECT_EQ(ScheduleRun(in_slices(spec_of(Collective::kBroadcast))).advance(),
            Task::Progress::kDone);
  EXPECT_EQ(taken, recv.memory);
  EXPECT_EQ(send.commits, 4);
  EXPECT_EQ(recv.releases, 1);
}

// Of two sources of a fold, one lends all at once and the other one slice after the other.
TEST_F(Loans, of_all_that_is_there_are_folded_with_slices) {
  FakeRecv other;
  plan_recv();
  const Descriptor theirs = bytes_of(Collective::kAllReduce);
  std::memcpy(recv.message.data(), &theirs, sizeof theirs);
  for (std::size_t i = 0; i < kCount; ++i) {
    recv.memory[i] = static_cast<std::byte>(i / 256);
    other.memory[i] = static_cast<std::byte>(i / 512);
  }
  other.message = recv.message;
  for (std::size_t at = 0; at < kCount; at += kCount / 4) {
    const Loan loan{at, kCount / 4};
    Bytes message(sizeof loan);
    std::memcpy(message.data(), &loan, sizeof loan);
    if (at > 0) other.later.push_back(message);
    if (at == 0) std::memcpy(other.message.data() + sizeof theirs, &loan, sizeof loan);
  }
  plan.fold_sources = {{.recv = &recv, .recv_from = 1, .opens_recv = true},
                       {.recv = &other, .recv_from = 2, .opens_recv = true}};
  plan.steps = {{.dst = output(0), .extent = output(0), .fold_count = 2}};
  RunSpec spec = in_slices(spec_of(Collective::kAllReduce));
  spec.kernels = &kernels::reduce_kernels(DataType::kUint8, ReduceOp::kSum, kernels::Isa::kScalar);
  EXPECT_EQ(ScheduleRun(spec).advance(), Task::Progress::kDone);
  for (std::size_t i = 0; i < kCount; ++i) {
    ASSERT_EQ(taken[i], static_cast<std::byte>(i / 256 + i / 512)) << "byte " << i;
  }
  EXPECT_EQ(recv.releases, 1);
  EXPECT_EQ(other.releases, 4);
}

TEST_F(Loans, that_end_before_the_pass_does_or_after_it_are_refused) {
  for (const std::size_t bytes : {kCount - 1, kCount + 1}) {
    plan_recv();
    const Loan loan{0, bytes};
    std::memcpy(recv.message.data() + sizeof(Descriptor), &loan, sizeof loan);
    EXPECT_THROW(ScheduleRun(in_slices(spec_of(Collective::kBroadcast))).advance(), Error);
  }
}

// That copy would have to be made of all before anything could go.
TEST_F(Loans, of_the_copy_of_input_go_slice_by_slice) {
  plan_send();
  plan.steps[0].dst = output(0);
  send.unmapped = given.data();
  ScheduleRun(in_slices(spec_of(Collective::kBroadcast))).advance();
  EXPECT_GT(send.commits, 1);
}

// A peer lends an operand and wants the sum in its own memory.
struct Returns : Fixture {
  static constexpr std::size_t kLong = 3 * kCount;
  Returns() {
    given.assign(kLong, std::byte{1});
    taken.assign(kLong, std::byte{2});
    recv.memory.assign(kLong, std::byte{3});
    recv.result.assign(kLong, std::byte{9});
    plan.steps = {{.recv = &recv,
                   .send = &send,
                   .src = input(0),
                   .dst = output(0),
                   .extent = output(0),
                   .lending = {output(0), true},
                   .recv_from = 1,
                   .send_to = 1,
                   .for_good = true}};
    plan.sends = {{&send, 1}};
  }
  RunSpec sum(std::size_t slot_bytes) {
    RunSpec spec = spec_of(Collective::kAllReduce);
    spec.descriptor.type = DataType::kUint8;
    spec.descriptor.count = kLong;
    spec.slicing = Slicing(Partition::split(kLong, 1, 1), slot_bytes, 4);
    spec.kernels =
        &kernels::reduce_kernels(DataType::kUint8, ReduceOp::kSum, kernels::Isa::kScalar);
    return spec;
  }
  void lend(Loan loan) {
    recv.message.resize(sizeof loan);
    std::memcpy(recv.message.data(), &loan, sizeof loan);
  }
  Loan sent() const {
    Loan loan;
    std::memcpy(&loan, send.slot.data() + send.slot.size() - sizeof loan, sizeof loan);
    return loan;
  }
};

TEST_F(Returns, put_the_sum_where_it_is_kept_and_where_the_peer_wants_it) {
  for (const std::size_t slot_bytes : {65536, 4096}) {  // all of it goes at once
    for (const bool past_caches : {false, true}) {
      for (const std::int64_t divisor : {1, 2}) {
        lend({0, kLong, 0});
        send.commits = 0;
        std::ranges::fill(taken, std::byte{2});
        std::ranges::fill(recv.result, std::byte{9});
        RunSpec spec = sum(slot_bytes);
        spec.past_caches = past_caches;
        spec.divisor = divisor;
        ScheduleRun run(spec);
        EXPECT_EQ(run.advance(), Task::Progress::kDone);
        const Bytes expected(kLong, static_cast<std::byte>(4 / divisor));
        EXPECT_EQ(taken, expected);
        EXPECT_EQ(recv.result, expected);
        EXPECT_FALSE(recv.writes || recv.written_outside);
        EXPECT_TRUE(recv.released);
        EXPECT_EQ(send.commits, 1);
        EXPECT_EQ(sent().offset, Loan::kReturned);
        EXPECT_EQ(sent().bytes, kLong);
      }
    }
  }
}

TEST_F(Returns, of_a_scaled_operand_are_of_what_was_scaled) {
  lend({0, kLong, 0});
  RunSpec spec = sum(65536);
  spec.scaling.from = Scaling::From::kValue;
  spec.scaling.value.bits[0] = std::byte{5};
  EXPECT_EQ(ScheduleRun(spec).advance(), Task::Progress::kDone);
  EXPECT_EQ(recv.result, Bytes(kLong, std::byte{8}));
  EXPECT_EQ(taken, recv.result);
}

TEST_F(Returns, are_messages_as_others_where_nothing_is_wanted) {
  lend({0, kLong});
  ScheduleRun run(sum(65536));
  run.advance();
  EXPECT_EQ(taken, Bytes(kLong, std::byte{4}));
  EXPECT_EQ(recv.result, Bytes(kLong, std::byte{9}));
  EXPECT_EQ(send.lent, taken.data());
}

TEST_F(Returns, end_where_the_peer_has_given_up) {
  lend({0, kLong, 0});
  recv.withdrawn = true;
  EXPECT_THROW(ScheduleRun(sum(65536)).advance(), Error);
  EXPECT_EQ(recv.result, Bytes(kLong, std::byte{9})) << "it was written to all the same";
  EXPECT_EQ(send.commits, 0);
}

TEST_F(Returns, end_where_the_peer_gives_up_meanwhile) {
  lend({0, kLong, 0});
  recv.after_writing = [this] { recv.withdrawn = true; };
  EXPECT_THROW(ScheduleRun(sum(65536)).advance(), Error);
  EXPECT_EQ(send.commits, 0);
}

TEST_F(Returns, are_asked_for_with_the_loan) {
  plan_send();
  plan.steps[0].lending.returned = output(0);
  ScheduleRun run(spec_of(Collective::kBroadcast));
  run.advance();
  EXPECT_EQ(send.wanted_at, taken.data());
}

TEST_F(Returns, are_there_already_for_who_asked_and_refused_by_others) {
  plan.steps = {{.recv = &recv, .dst = output(0), .extent = output(0), .recv_from = 1}};
  plan.sends.clear();
  lend({Loan::kReturned, kLong});
  EXPECT_THROW(ScheduleRun(sum(65536)).advance(), Error);
  plan.steps[0].is_returned = true;
  EXPECT_EQ(ScheduleRun(sum(65536)).advance(), Task::Progress::kDone);
  EXPECT_EQ(taken, Bytes(kLong, std::byte{2})) << "something was copied";
  EXPECT_TRUE(recv.released);
  lend({Loan::kReturned, kLong - 1024});
  EXPECT_THROW(ScheduleRun(sum(65536)).advance(), Error) << "less than was asked for";
}

// Users get their buffers back when a failed operation is over.
TEST_F(Returns, are_waited_for_when_an_operation_is_given_up) {
  plan_send();
  plan.is_open_to_writers = true;
  FakeOwner owner;
  GroupRun* const run = new GroupRun;
  run->begin(owner);
  Turn turn;
  const RunSpec spec = spec_of(Collective::kBroadcast);
  run->add({.spec = spec,
            .input = spec.input,
            .output = spec.output,
            .turn = turn,
            .ticket = turn.take()});
  run->poll();
  EXPECT_EQ(owner.open_to_writers(), 1);
  send.written_to = true;
  const Error error(ErrorCode::kRemote, "aborted");
  EXPECT_FALSE(run->fail(error));
  EXPECT_TRUE(send.withdrawn);
  EXPECT_FALSE(run->fail(error));
  send.written_to = false;
  EXPECT_TRUE(run->fail(error));
  run->recycle();
  EXPECT_EQ(owner.open_to_writers(), 0);
  delete run;
}

TEST_F(Loans, are_withdrawn_when_an_operation_is_given_up) {
  plan_send();
  Turn turn;
  GroupRun group;
  FakeOwner owner;
  group.begin(owner);
  const RunSpec spec = spec_of(Collective::kBroadcast);
  group.add({.spec = spec,
             .input = spec.input,
             .output = spec.output,
             .turn = turn,
             .ticket = turn.take()});
  EXPECT_EQ(group.poll(), Task::Progress::kSome);
  EXPECT_FALSE(send.withdrawn);
  group.recycle();
  EXPECT_TRUE(send.withdrawn);
}

}  // namespace
}  // namespace catenary
