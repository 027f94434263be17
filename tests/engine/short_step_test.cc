// What is done at once: what it does to links and buffers, and that all else is left as it was.
#include "src/engine/short_step.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "tests/engine/fake_links.h"

namespace catenary {
namespace {

using Ints = std::array<std::int32_t, 4>;

constexpr Chunk kInput{Buffer::kInput, 0};
constexpr Chunk kOutput{Buffer::kOutput, 0};

struct ShortSteps : testing::Test {
  ShortSteps() {
    spec.plan = &plan;
    spec.kernels = &kernels::reduce_kernels(DataType::kInt32, ReduceOp::kMin, kernels::best_isa());
    spec.descriptor.kind = Collective::kBroadcast;
    spec.descriptor.type = DataType::kInt32;
    set_count(given.size());
  }

  void set_count(std::size_t count, std::size_t slice_bytes = 65536) {
    spec.descriptor.count = count;
    spec.slicing = Slicing(Partition::split(count, sizeof(std::int32_t), 1), slice_bytes, 8);
  }
  PlannedStep sending() {
    PlannedStep step;
    step.send = &send;
    step.send_to = 1;
    step.src = step.extent = kInput;
    return step;
  }
  PlannedStep taking(const Chunk& operand = {}) {
    PlannedStep step;
    step.recv = &recv;
    step.recv_from = 1;
    step.src = operand;
    step.dst = step.extent = kOutput;
    return step;
  }
  static PlannedStep keeping() {
    PlannedStep step;
    step.src = step.extent = kInput;
    step.dst = kOutput;
    return step;
  }
  bool is_short(std::vector<PlannedStep> steps) {
    plan.steps = std::move(steps);
    return static_cast<bool>(ShortStep(spec));
  }
  bool try_do(std::vector<PlannedStep> steps, const void* input) {
    plan.steps = std::move(steps);
    ShortStep step(spec);
    return step && step.try_do(input, got.data(), kNumber);
  }
  void let_come(std::uint32_t number, const Ints& data, std::size_t bytes = sizeof(Ints)) {
    Descriptor opening = spec.descriptor;
    opening.sequence = number;
    recv.message.resize(kDescriptorBytes + bytes);
    std::memcpy(recv.message.data(), &opening, sizeof opening);
    std::memcpy(recv.message.data() + kDescriptorBytes, data.data(), bytes);
  }
  void expect_sent(const Ints& data) const {
    ASSERT_EQ(send.committed, kDescriptorBytes + sizeof data);
    Descriptor opening = spec.descriptor;
    opening.sequence = kNumber;
    EXPECT_EQ(std::memcmp(send.slot.data(), &opening, sizeof opening), 0);
    EXPECT_EQ(std::memcmp(send.slot.data() + kDescriptorBytes, data.data(), sizeof data), 0);
  }

  static constexpr std::uint32_t kNumber = 5;
  FakeSend send;
  FakeRecv recv;
  Plan plan;
  RunSpec spec;
  const Ints given{1, -2, 30, 4};
  Ints got{7, 7, 7, 7};
};

TEST_F(ShortSteps, send_with_an_opening) {
  ASSERT_TRUE(try_do({sending()}, given.data()));
  expect_sent(given);
  EXPECT_EQ(got, (Ints{7, 7, 7, 7}));
}

TEST_F(ShortSteps, keep_what_they_send) {
  ASSERT_TRUE(try_do({sending(), keeping()}, given.data()));
  expect_sent(given);
  EXPECT_EQ(got, given);
  PlannedStep both = sending();
  both.dst = kOutput;
  got = {};
  ASSERT_TRUE(try_do({both}, given.data()));
  EXPECT_EQ(got, given);
}

TEST_F(ShortSteps, take_what_has_come) {
  let_come(kNumber, given);
  ASSERT_TRUE(try_do({taking()}, nullptr));
  EXPECT_EQ(got, given);
  EXPECT_TRUE(recv.released);
}

TEST_F(ShortSteps, reduce_what_has_come) {
  let_come(kNumber, given);
  const Ints own{0, 0, 0, 5};
  ASSERT_TRUE(try_do({taking(kInput)}, own.data()));
  EXPECT_EQ(got, (Ints{0, -2, 0, 4}));
  let_come(kNumber, given);
  spec.divisor = 2;
  ASSERT_TRUE(try_do({taking(kOutput)}, nullptr)) << "in place";
  EXPECT_EQ(got, (Ints{0, -1, 0, 2}));
}

// Around where data lies behind its opening in another way, and is written by the link.
struct ShortMessagesOf : ShortSteps, testing::WithParamInterface<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(Bytes, ShortMessagesOf, testing::Values(0, 1, 640, 641, 1023, 1024, 8192));

TEST_P(ShortMessagesOf, arrive) {
  const Bytes data(GetParam(), std::byte{3});
  ASSERT_TRUE(send_short(send, spec.descriptor, data));
  recv.message.assign(send.slot.begin(),
                      send.slot.begin() + static_cast<std::ptrdiff_t>(send.committed));
  const std::byte* const taken = peek_short(recv, spec.descriptor, data.size());
  ASSERT_NE(taken, nullptr);
  EXPECT_EQ(Bytes(taken, taken + data.size()), data);
  EXPECT_EQ(peek_short(recv, spec.descriptor, data.size() + 1), nullptr);
  Descriptor other = spec.descriptor;
  other.sequence = 1;
  EXPECT_EQ(peek_short(recv, other, data.size()), nullptr);
}

TEST_F(ShortSteps, leave_all_as_it_was_where_they_must_wait) {
  send.is_full = true;
  EXPECT_FALSE(try_do({sending(), keeping()}, given.data()));
  EXPECT_FALSE(try_do({taking()}, nullptr));
  EXPECT_EQ(send.commits, 0);
  EXPECT_FALSE(recv.released);
  EXPECT_EQ(got, (Ints{7, 7, 7, 7}));
}

TEST_F(ShortSteps, leave_what_does_not_belong) {
  let_come(kNumber + 1, given);
  EXPECT_FALSE(try_do({taking()}, nullptr));
  let_come(kNumber, given, sizeof given - 1);
  EXPECT_FALSE(try_do({taking()}, nullptr));
  recv.message.resize(3);
  EXPECT_FALSE(try_do({taking()}, nullptr));
  EXPECT_FALSE(recv.released);
  EXPECT_EQ(got, (Ints{7, 7, 7, 7}));
}

TEST_F(ShortSteps, are_one_message_and_no_more) {
  EXPECT_TRUE(is_short({sending()}));
  EXPECT_FALSE(is_short({}));
  EXPECT_FALSE(is_short({keeping()}));
  EXPECT_FALSE(is_short({sending(), taking()}));
  EXPECT_FALSE(is_short({sending(), sending()}));
  EXPECT_FALSE(is_short({taking(), keeping()}));
  PlannedStep passing = taking();
  passing.send = &send;
  EXPECT_FALSE(is_short({passing}));
  PlannedStep folding = taking();
  folding.fold_count = 2;
  EXPECT_FALSE(is_short({folding}));
}

TEST_F(ShortSteps, are_not_for_links_that_have_to_be_flushed) {
  send.flushed_by_commit = false;
  EXPECT_FALSE(is_short({sending()}));
  EXPECT_TRUE(is_short({taking()}));
}

TEST_F(ShortSteps, are_short_whole_and_as_they_are) {
  set_count(kMostAtOnce / sizeof(std::int32_t));
  EXPECT_TRUE(is_short({sending()}));
  set_count(kMostAtOnce / sizeof(std::int32_t) + 1);
  EXPECT_FALSE(is_short({sending()}));
  set_count(64, 64);
  EXPECT_FALSE(is_short({sending()})) << "it is more than a slice";
  set_count(0);
  EXPECT_FALSE(is_short({sending()}));
  set_count(given.size());
  spec.copied_input = 1;
  EXPECT_FALSE(is_short({sending()}));
  spec.copied_input = 0;
  spec.scaling.from = Scaling::From::kValue;
  EXPECT_FALSE(is_short({sending()}));
  spec.scaling.from = Scaling::From::kNothing;
  plan.scratch_count = 1;
  EXPECT_FALSE(is_short({sending()}));
  plan.scratch_count = 0;
  plan.chunk_count = 2;
  EXPECT_FALSE(is_short({sending()}));
}

}  // namespace
}  // namespace catenary
