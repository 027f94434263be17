// What a run does with long loans that are only kept: both ranks copy, and nothing is over before
// both have done their part.
#include <gtest/gtest.h>

#include <cstring>

#include "src/engine/schedule_run.h"
#include "tests/engine/fake_links.h"

namespace catenary {
namespace {

using Copied = RecvLink::Copied;
constexpr std::size_t kLong = RecvLink::kLeastCopiedTogether;

class SharedCopies : public testing::Test {
 protected:
  explicit SharedCopies(std::size_t bytes = kLong)
      : bytes_(bytes), given_(bytes, std::byte{1}), taken_(bytes, std::byte{2}) {
    descriptor_.kind = Collective::kBroadcast;
    descriptor_.count = bytes;
    recv_.memory.assign(bytes, std::byte{3});
  }

  RunSpec spec() const {
    RunSpec spec;
    spec.plan = &plan_;
    spec.input = given_.data();
    spec.output = const_cast<std::byte*>(taken_.data());
    spec.slicing = Slicing(Partition::split(bytes_, 1, 1), 65536, 15);
    spec.descriptor = descriptor_;
    spec.least_loan = kLeastLoan;
    return spec;
  }
  void plan_send() {
    plan_.steps = {{.send = &send_,
                    .src = input(0),
                    .extent = input(0),
                    .lending = {input(0), true},
                    .send_to = 1,
                    .opens_send = true}};
    plan_.sends = {{&send_, 1}};
  }
  void plan_recv() {
    plan_.steps = {{.recv = &recv_,
                    .dst = output(0),
                    .extent = output(0),
                    .recv_from = 1,
                    .opens_recv = true}};
    const Loan loan{0, bytes_};
    recv_.message.resize(sizeof descriptor_ + sizeof loan);
    std::memcpy(recv_.message.data(), &descriptor_, sizeof descriptor_);
    std::memcpy(recv_.message.data() + sizeof descriptor_, &loan, sizeof loan);
  }

  FakeOwner owner_;
  std::size_t bytes_;
  Descriptor descriptor_;
  FakeSend send_;
  FakeRecv recv_;
  Plan plan_;
  Bytes given_;
  Bytes taken_;
};

class ShortCopies : public SharedCopies {
 protected:
  ShortCopies() : SharedCopies(kLong - 1) {}
};

// Whether outputs are in the caches changes from one operation to the next.
TEST_F(SharedCopies, go_past_the_caches_as_each_life_of_the_same_stamp_is_told) {
  plan_recv();
  plan_.steps.front().for_good = true;
  RunSpec told = spec();
  told.stamp = 7;
  ScheduleRun run(told);
  for (const bool past_caches : {true, false, true}) {
    plan_recv();
    plan_.steps.front().for_good = true;
    recv_.copied.assign(recv_.asked + 1, Copied::kDone);
    told.past_caches = past_caches;
    run.begin(told, told.input, told.output, 0);
    EXPECT_EQ(run.advance(), Task::Progress::kDone);
    EXPECT_EQ(recv_.copied_past_caches, past_caches);
  }
}

TEST_F(SharedCopies, are_not_over_before_the_peer_has_done_its_part) {
  plan_recv();
  recv_.copied = {Copied::kUnderWay, Copied::kUnderWay, Copied::kDone};
  ScheduleRun run(spec());
  EXPECT_TRUE(run.is_open_to_writers());
  for (int i = 0; i < 2; ++i) {
    EXPECT_NE(run.advance(), Task::Progress::kDone);
    EXPECT_FALSE(run.still_waits()) << "nobody would look again";
    EXPECT_EQ(run.waits_for(), 1);
    EXPECT_EQ(recv_.releases, 0);
    recv_.helped = true;
    EXPECT_EQ(run.writer(), 1);
    recv_.helped = false;
    EXPECT_EQ(run.writer(), kNobody);
  }
  EXPECT_EQ(run.advance(), Task::Progress::kDone);
  EXPECT_EQ(recv_.asked, 3u);
  EXPECT_EQ(recv_.releases, 1);
  EXPECT_EQ(taken_, recv_.memory);
}

TEST_F(SharedCopies, are_made_alone_where_the_link_cannot_share_them) {
  plan_recv();
  EXPECT_EQ(ScheduleRun(spec()).advance(), Task::Progress::kDone);
  EXPECT_EQ(recv_.asked, 1u);
  EXPECT_EQ(taken_, recv_.memory);
}

TEST_F(SharedCopies, of_what_was_withdrawn_are_not_used) {
  plan_recv();
  recv_.copied = {Copied::kDone};
  recv_.withdrawn = true;
  ScheduleRun run(spec());
  EXPECT_THROW(run.advance(), Error);
  EXPECT_EQ(recv_.releases, 0);
}

TEST_F(SharedCopies, that_are_not_waited_for_any_more_are_forbidden) {
  plan_recv();
  recv_.copied = {Copied::kUnderWay};
  ScheduleRun run(spec());
  run.forbid_writer();
  EXPECT_FALSE(recv_.forbidden) << "nobody writes";
  run.advance();
  run.forbid_writer();
  EXPECT_TRUE(recv_.forbidden);
}

TEST_F(SharedCopies, are_forgotten_in_the_next_life) {
  plan_recv();
  recv_.copied = {Copied::kUnderWay};
  ScheduleRun run(spec());
  run.advance();
  recv_.helped = true;
  run.begin(spec(), given_.data(), taken_.data(), 0);
  EXPECT_EQ(run.writer(), kNobody);
}

TEST_F(SharedCopies, are_helped_with_by_who_waits_to_be_taken) {
  plan_send();
  send_.pieces = 2;
  GroupRun group;
  group.begin(owner_);
  Turn turn;
  group.add({.spec = spec(),
             .input = given_.data(),
             .output = nullptr,
             .turn = turn,
             .ticket = turn.take()});
  owner_.waits = false;
  EXPECT_EQ(group.poll(), Task::Progress::kSome);  // lends
  EXPECT_EQ(group.poll(), Task::Progress::kNone);
  EXPECT_EQ(send_.pieces, 2) << "nobody has the time";
  owner_.waits = true;
  EXPECT_EQ(group.poll(), Task::Progress::kSome);
  EXPECT_EQ(send_.pieces, 1) << "one at a time";
  EXPECT_EQ(group.poll(), Task::Progress::kSome);
  EXPECT_EQ(group.poll(), Task::Progress::kNone);
  send_.lent = nullptr;
  EXPECT_EQ(group.poll(), Task::Progress::kDone);
}

class SharedSums : public SharedCopies {
 protected:
  // What both sides call what they do, so that each knows whether the other one does the same.
  static constexpr std::uint32_t kAverageOfBytes =
      1 + static_cast<std::uint32_t>(DataType::kUint8) * 256 +
      static_cast<std::uint32_t>(Reduction::kAvg);

  explicit SharedSums(std::size_t bytes = RecvLink::kLeastCombinedTogether) : SharedCopies(bytes) {
    descriptor_.kind = Collective::kReduce;
    descriptor_.type = DataType::kUint8;
    descriptor_.reduction = Reduction::kAvg;
  }
  // Of 1 and 3, by 2 ranks.
  RunSpec average() const {
    RunSpec average = spec();
    average.kernels =
        &kernels::reduce_kernels(DataType::kUint8, ReduceOp::kSum, kernels::Isa::kScalar);
    average.divisor = 2;
    return average;
  }
  void plan_average() {
    plan_recv();
    plan_.steps.front().src = input(0);
    plan_.steps.front().for_good = true;
  }
  const Bytes right_ = Bytes(bytes_, std::byte{2});
};

TEST_F(SharedSums, are_finished_once_the_peer_has_done_its_part) {
  for (const bool past_caches : {false, true}) {
    plan_average();
    recv_.asked = 0;
    recv_.copied = {Copied::kUnderWay, Copied::kDone};
    RunSpec told = average();
    told.past_caches = past_caches;
    ScheduleRun run(told);
    EXPECT_TRUE(run.is_open_to_writers());
    taken_.assign(bytes_, std::byte{77});
    EXPECT_NE(run.advance(), Task::Progress::kDone);
    EXPECT_EQ(run.waits_for(), 1);
    EXPECT_EQ(run.advance(), Task::Progress::kDone);
    EXPECT_EQ(recv_.asked, 2u);
    EXPECT_EQ(recv_.combination, kAverageOfBytes);
    EXPECT_EQ(recv_.copied_past_caches, past_caches);
    EXPECT_EQ(taken_, right_);
  }
}

TEST_F(SharedSums, are_made_alone_where_the_link_cannot_share_them) {
  plan_average();
  EXPECT_EQ(ScheduleRun(average()).advance(), Task::Progress::kDone);
  EXPECT_EQ(recv_.asked, 1u);
  EXPECT_EQ(taken_, right_);
}

class ShortSums : public SharedSums {
 protected:
  ShortSums() : SharedSums(RecvLink::kLeastCombinedTogether - 1) {}
};

TEST_F(ShortSums, are_made_alone) {
  plan_average();
  EXPECT_EQ(ScheduleRun(average()).advance(), Task::Progress::kDone);
  EXPECT_EQ(recv_.asked, 0u);
  EXPECT_EQ(taken_, right_);
}

TEST_F(SharedSums, are_made_alone_where_operands_are_scaled) {
  plan_average();
  RunSpec scaled = average();
  scaled.divisor = 1;
  scaled.scaling.from = Scaling::From::kValue;
  scaled.scaling.value.bits[0] = std::byte{2};
  EXPECT_EQ(ScheduleRun(scaled).advance(), Task::Progress::kDone);
  EXPECT_EQ(recv_.asked, 0u);
  EXPECT_EQ(taken_, Bytes(bytes_, std::byte{5}));
}

TEST_F(SharedSums, are_helped_with_in_the_same_way) {
  plan_send();
  send_.pieces = 1;
  ScheduleRun run(average());
  run.advance();
  EXPECT_TRUE(run.help());
  EXPECT_EQ(send_.helped_with, kAverageOfBytes);
}

TEST_F(ShortCopies, are_made_alone) {
  plan_recv();
  recv_.copied = {Copied::kUnderWay};
  ScheduleRun run(spec());
  EXPECT_FALSE(run.is_open_to_writers());
  EXPECT_EQ(run.advance(), Task::Progress::kDone);
  EXPECT_EQ(recv_.asked, 0u);
  EXPECT_EQ(taken_, recv_.memory);
}

TEST_F(ShortCopies, are_not_helped_with) {
  plan_send();
  send_.pieces = 1;
  ScheduleRun run(spec());
  run.advance();
  EXPECT_FALSE(run.may_help());
  EXPECT_FALSE(run.help());
  EXPECT_EQ(send_.pieces, 1);
}

}  // namespace
}  // namespace catenary
