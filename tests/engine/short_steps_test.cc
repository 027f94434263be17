// What is done at once: what it does to links and buffers, and that all else is left as it was.
#include "src/engine/short_steps.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "tests/engine/fake_links.h"

namespace catenary {
namespace {

using Ints = std::array<std::int32_t, 4>;

constexpr Chunk kInput{Buffer::kInput, 0};
constexpr Chunk kOutput{Buffer::kOutput, 0};

struct StepsAtOnce : testing::Test {
  StepsAtOnce() {
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
    step.opens_send = true;
    return step;
  }
  PlannedStep taking(const Chunk& operand = {}) {
    PlannedStep step;
    step.recv = &recv;
    step.recv_from = 1;
    step.src = operand;
    step.dst = step.extent = kOutput;
    step.opens_recv = true;
    return step;
  }
  static PlannedStep keeping() {
    PlannedStep step;
    step.src = step.extent = kInput;
    step.dst = kOutput;
    return step;
  }
  bool are_short(std::vector<PlannedStep> steps) {
    plan.steps = std::move(steps);
    return static_cast<bool>(ShortSteps(spec));
  }
  // How many were done.
  std::size_t try_do(std::vector<PlannedStep> planned, const void* input) {
    plan.steps = std::move(planned);
    ShortSteps steps(spec);
    EXPECT_TRUE(static_cast<bool>(steps));
    steps.begin(input, got.data(), kNumber);
    steps.try_do();
    EXPECT_EQ(steps.all_done(), steps.done() == plan.steps.size());
    EXPECT_EQ(steps.descriptor().sequence, kNumber);
    met_another = steps.met_another();
    send.rings = recv.rings = 0;
    steps.ring_peers(0, false);
    return steps.done();
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
  bool met_another = false;  // did the last one
  FakeSend send;
  FakeRecv recv;
  Plan plan;
  RunSpec spec;
  const Ints given{1, -2, 30, 4};
  Ints got{7, 7, 7, 7};
};

TEST_F(StepsAtOnce, send_with_an_opening) {
  EXPECT_EQ(try_do({sending()}, given.data()), 1u);
  expect_sent(given);
  EXPECT_EQ(got, (Ints{7, 7, 7, 7}));
}

TEST_F(StepsAtOnce, keep_what_they_send) {
  EXPECT_EQ(try_do({sending(), keeping()}, given.data()), 2u);
  expect_sent(given);
  EXPECT_EQ(got, given);
  PlannedStep both = sending();
  both.dst = kOutput;
  got = {};
  EXPECT_EQ(try_do({both}, given.data()), 1u);
  EXPECT_EQ(got, given);
}

TEST_F(StepsAtOnce, take_what_has_come) {
  let_come(kNumber, given);
  EXPECT_EQ(try_do({taking()}, nullptr), 1u);
  EXPECT_EQ(got, given);
  EXPECT_TRUE(recv.released);
}

TEST_F(StepsAtOnce, reduce_what_has_come) {
  let_come(kNumber, given);
  const Ints own{0, 0, 0, 5};
  EXPECT_EQ(try_do({taking(kInput)}, own.data()), 1u);
  EXPECT_EQ(got, (Ints{0, -2, 0, 4}));
  let_come(kNumber, given);
  spec.divisor = 2;
  EXPECT_EQ(try_do({taking(kOutput)}, nullptr), 1u) << "in place";
  EXPECT_EQ(got, (Ints{0, -1, 0, 2}));
}

TEST_F(StepsAtOnce, reduce_in_the_order_that_the_step_says) {
  kernels::ReduceKernels takes_the_first = *spec.kernels;
  takes_the_first.reduce = [](void* out, const void* first, const void*, std::size_t count) {
    std::memcpy(out, first, count * sizeof(std::int32_t));
  };
  spec.kernels = &takes_the_first;
  const Ints own{5, 6, 7, 8};
  let_come(kNumber, given);
  EXPECT_EQ(try_do({taking(kInput)}, own.data()), 1u);
  EXPECT_EQ(got, own);
  let_come(kNumber, given);
  PlannedStep step = taking(kInput);
  step.received_first = true;
  EXPECT_EQ(try_do({step}, own.data()), 1u);
  EXPECT_EQ(got, given);
}

TEST_F(StepsAtOnce, pass_on_what_has_come) {
  PlannedStep passing = taking(kInput);
  passing.send = &send;
  passing.send_to = 2;
  passing.opens_send = true;
  const Ints own{0, 0, 0, 5};
  const Ints least{0, -2, 0, 4};
  let_come(kNumber, given);
  EXPECT_EQ(try_do({passing}, own.data()), 1u);
  expect_sent(least);
  EXPECT_EQ(got, least);
  passing.dst = {};
  spec.divisor = 2;
  got = {};
  let_come(kNumber, given);
  EXPECT_EQ(try_do({passing}, own.data()), 1u);
  expect_sent(least);  // whoever completes it divides
  EXPECT_EQ(got, Ints{});
  passing.src = {};
  let_come(kNumber, given);
  EXPECT_EQ(try_do({passing}, nullptr), 1u);
  expect_sent(given);
}

TEST_F(StepsAtOnce, ring_who_was_sent_to_and_taken_from) {
  EXPECT_EQ(try_do({sending(), taking()}, given.data()), 1u);
  EXPECT_EQ(send.quiet_commits, 1);
  EXPECT_EQ(send.rings, 1);
  EXPECT_EQ(recv.rings, 0);
  let_come(kNumber, given);
  EXPECT_EQ(try_do({taking(), keeping()}, given.data()), 2u);
  EXPECT_EQ(recv.quiet_releases, 1);
  EXPECT_EQ(recv.rings, 1);
}

TEST_F(StepsAtOnce, open_a_link_once) {
  PlannedStep second = sending();
  second.opens_send = false;
  EXPECT_EQ(try_do({sending(), second}, given.data()), 2u);
  EXPECT_EQ(send.committed, sizeof given);
  EXPECT_EQ(std::memcmp(send.slot.data(), given.data(), sizeof given), 0);
  PlannedStep next = taking();
  next.opens_recv = false;
  recv.message = send.slot;
  EXPECT_EQ(try_do({next}, nullptr), 1u);
  EXPECT_EQ(got, given);
}

TEST_F(StepsAtOnce, move_the_chunk_that_a_step_names) {
  plan.chunk_count = 2;
  spec.slicing = Slicing(Partition::per_rank(2, {0, 2}, sizeof(std::int32_t), 2), 65536, 8);
  PlannedStep step = keeping();
  step.src = step.extent = input(1);
  step.dst = output(0);
  EXPECT_EQ(try_do({step}, given.data()), 1u);
  EXPECT_EQ(got, (Ints{30, 4, 7, 7}));
}

TEST_F(StepsAtOnce, keep_as_the_link_reads_what_is_longer) {
  constexpr std::size_t kLong = kLeastLoan / sizeof(std::int32_t);
  set_count(kLong);
  const std::vector<std::int32_t> data(kLong, 3);
  std::vector<std::int32_t> kept(kLong);
  Descriptor opening = spec.descriptor;
  opening.sequence = kNumber;
  ASSERT_TRUE(send_short(send, opening, std::as_bytes(std::span(data))));
  recv.message.assign(send.slot.begin(),
                      send.slot.begin() + static_cast<std::ptrdiff_t>(send.committed));
  plan.steps = {taking()};
  ShortSteps steps(spec);
  steps.begin(nullptr, kept.data(), kNumber);
  steps.try_do();
  EXPECT_TRUE(steps.all_done());
  EXPECT_EQ(kept, data);
  EXPECT_EQ(recv.bytes_read, kLeastLoan);
}

// Around where data lies behind its opening in another way, and is written and read by the link.
struct ShortMessagesOf : StepsAtOnce, testing::WithParamInterface<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(Bytes, ShortMessagesOf, testing::Values(0, 1, 640, 641, 1023, 1024, 8192));

TEST_P(ShortMessagesOf, arrive) {
  const Bytes data(GetParam(), std::byte{3});
  ASSERT_TRUE(send_short(send, spec.descriptor, data));
  recv.message.assign(send.slot.begin(),
                      send.slot.begin() + static_cast<std::ptrdiff_t>(send.committed));
  Bytes kept(data.size());
  const ShortMessage taken = keep_short(recv, spec.descriptor, kept);
  ASSERT_NE(taken.data, nullptr);
  EXPECT_FALSE(taken.is_another);
  EXPECT_EQ(Bytes(taken.data, taken.data + data.size()), data);
  EXPECT_EQ(kept, data);
  EXPECT_EQ(recv.bytes_read, data.size() >= kLeastLoan ? data.size() : 0);
  Bytes longer(data.size() + 1);
  EXPECT_TRUE(keep_short(recv, spec.descriptor, longer).is_another);
  Descriptor other = spec.descriptor;
  other.sequence = 1;
  EXPECT_TRUE(keep_short(recv, other, kept).is_another);
  EXPECT_EQ(keep_short(recv, other, kept).data, nullptr);
  recv.message = {};
  EXPECT_FALSE(keep_short(recv, other, kept).is_another);
}

TEST_F(StepsAtOnce, end_where_they_must_wait) {
  send.room = 0;
  EXPECT_EQ(try_do({keeping(), sending(), taking()}, given.data()), 1u);
  EXPECT_EQ(try_do({taking(), keeping()}, given.data()), 0u);
  EXPECT_FALSE(met_another);
  PlannedStep passing = taking(kInput);
  passing.send = &send;
  let_come(kNumber, given);
  EXPECT_EQ(try_do({passing}, given.data()), 0u);
  EXPECT_EQ(send.commits, 0);
  EXPECT_FALSE(recv.released);
  EXPECT_EQ(got, given);
}

// What a run goes on with: two chunks, links that are opened and used again, and sums passed on.
struct HandedOver : StepsAtOnce {
  HandedOver() {
    plan.chunk_count = 2;
    spec.slicing = Slicing(Partition::per_rank(2, {0, 2}, sizeof(std::int32_t), 2), 65536, 8);
    PlannedStep first = sending();
    first.src = first.extent = input(0);
    PlannedStep passing = taking(input(1));
    passing.dst = passing.extent = output(1);
    passing.send = &send;
    passing.send_to = 1;
    PlannedStep keeping_own = keeping();
    keeping_own.src = keeping_own.extent = input(0);
    keeping_own.dst = output(0);
    PlannedStep again = taking();
    again.dst = again.extent = output(0);
    again.opens_recv = false;
    PlannedStep last = sending();
    last.src = last.extent = output(0);
    last.opens_send = false;
    plan.steps = {first, passing, keeping_own, again, last};
    let_come(kNumber, {5, -5, 0, 0}, 8);
    opening_message = recv.message;
    second_message.assign(opening_message.end() - 8, opening_message.end());
    recv.message = {};
  }
  // The rest of it, of which `done` steps are done.
  void run_from(std::size_t done) {
    send.room = 1'000'000;
    if (done <= 1) {
      recv.message = opening_message;
      recv.later = {second_message};
    } else if (done <= 3) {
      recv.message = second_message;
    }
    ScheduleRun run;
    run.begin(spec, given.data(), got.data(), kNumber);
    run.skip(done);
    EXPECT_EQ(run.advance(), Task::Progress::kDone);
  }

  Bytes opening_message;
  Bytes second_message;
};

TEST_F(HandedOver, schedules_end_as_if_a_run_had_done_all) {
  run_from(0);
  const std::vector<Bytes> sent = std::exchange(send.sent, {});
  const Ints result = std::exchange(got, {});
  EXPECT_EQ(sent.size(), 3u);
  EXPECT_EQ(result, (Ints{5, -5, 5, -5}));
  const auto hand_over = [&](std::size_t at, int room, const Bytes& come, const Bytes& later) {
    send.room = room;
    recv.message = come;
    recv.later.clear();
    if (!later.empty()) recv.later = {later};
    ASSERT_EQ(try_do(plan.steps, given.data()), at);
    if (at < plan.steps.size()) run_from(at);
    EXPECT_EQ(std::exchange(send.sent, {}), sent) << at;
    EXPECT_EQ(std::exchange(got, {}), result) << at;
  };
  hand_over(0, 0, {}, {});
  hand_over(1, 9, {}, {});
  hand_over(1, 1, opening_message, second_message);
  hand_over(3, 9, opening_message, {});
  hand_over(4, 2, opening_message, second_message);
  hand_over(5, 9, opening_message, second_message);
}

TEST_F(StepsAtOnce, leave_what_does_not_belong) {
  let_come(kNumber + 1, given);
  EXPECT_EQ(try_do({taking()}, nullptr), 0u);
  EXPECT_TRUE(met_another);
  let_come(kNumber, given, sizeof given - 1);
  EXPECT_EQ(try_do({taking()}, nullptr), 0u);
  recv.message.resize(3);
  EXPECT_EQ(try_do({taking()}, nullptr), 0u);
  PlannedStep later = taking();
  later.opens_recv = false;
  recv.message.resize(sizeof given + 1);
  EXPECT_EQ(try_do({later}, nullptr), 0u);
  EXPECT_TRUE(met_another);
  EXPECT_FALSE(recv.released);
  EXPECT_EQ(got, (Ints{7, 7, 7, 7}));
}

TEST_F(StepsAtOnce, need_nothing_that_a_run_has) {
  EXPECT_TRUE(are_short({sending(), taking(), keeping()}));
  EXPECT_FALSE(are_short({}));
  PlannedStep folding = taking();
  folding.fold_count = 2;
  EXPECT_FALSE(are_short({sending(), folding}));
  PlannedStep storing = taking();
  storing.dst = scratch(0);
  EXPECT_FALSE(are_short({sending(), storing}));
  spec.copied_input = 1;
  EXPECT_FALSE(are_short({sending()}));
  spec.copied_input = 0;
  spec.scaling.from = Scaling::From::kValue;
  EXPECT_FALSE(are_short({sending()}));
}

TEST_F(StepsAtOnce, are_not_for_links_that_have_to_be_flushed) {
  send.flushed_by_commit = false;
  EXPECT_FALSE(are_short({sending()}));
  EXPECT_TRUE(are_short({taking()}));
}

TEST_F(StepsAtOnce, are_of_chunks_that_are_one_message) {
  set_count(kMostAtOnce / sizeof(std::int32_t));
  EXPECT_TRUE(are_short({sending()}));
  set_count(kMostAtOnce / sizeof(std::int32_t) + 1);
  EXPECT_FALSE(are_short({sending()}));
  set_count(64, 64);
  EXPECT_FALSE(are_short({sending()})) << "it is more than a slice";
  set_count(0);
  EXPECT_FALSE(are_short({sending()}));
  plan.chunk_count = 2;
  spec.slicing = Slicing(Partition::split(1, sizeof(std::int32_t), 2), 65536, 8);
  EXPECT_FALSE(are_short({sending()})) << "one of the chunks is empty";
}

}  // namespace
}  // namespace catenary
