// That what goes to several peers is copied once, to where all of them read it: seen by driving
// ranks in turns.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "src/base/config.h"
#include "src/collective/algorithms.h"
#include "src/engine/schedule_run.h"
#include "tests/engine/loopback_rank.h"

namespace catenary {
namespace {

constexpr std::size_t kSlotBytes = 65536;

class Staging : public testing::Test {
 protected:
  // Ranks that run the schedules, `slices` of a chunk in a pass.
  void make(const std::vector<Schedule>& schedules, std::uint32_t slices) {
    slices_ = slices;
    ranks_ = ranks_of(static_cast<int>(schedules.size()), config_);
    memory_.resize(schedules.size());
    for (std::size_t rank = 0; rank < schedules.size(); ++rank) {
      const std::vector<Lending> nothing(schedules[rank].steps.size());
      plans_.push_back(compile(schedules[rank], nothing, static_cast<int>(rank),
                               Channel::kCollective, false, ranks_[rank]->links));
    }
  }
  void make(Collective collective, int nranks, std::uint32_t slices = 4) {
    std::vector<Schedule> schedules;
    for (int rank = 0; rank < nranks; ++rank) {
      const Algorithm& direct = *find_algorithm(collective, "direct");
      schedules.push_back(schedule_of(direct, {.rank = rank, .ranks = nranks}));
    }
    make(schedules, slices);
  }

  // In place, on `bytes` that are all `value`; input begins somewhere among them.
  ScheduleRun run(std::size_t rank, std::size_t bytes, int value, std::size_t input_at = 0) {
    Bytes& memory = memory_[rank];
    memory.assign(bytes, std::byte(value));
    RunSpec spec;
    spec.plan = &plans_[rank];
    spec.input = memory.data() + input_at;
    spec.output = memory.data();
    spec.in_place = true;
    spec.rank = static_cast<int>(rank);
    spec.descriptor.kind = Collective::kBroadcast;
    spec.descriptor.type = DataType::kUint8;
    spec.descriptor.count = bytes;
    const int chunks = spec.plan->chunk_count;
    spec.slicing = Slicing(Partition::split(bytes, 1, chunks), kSlotBytes, slices_);
    return ScheduleRun(spec);
  }
  bool all_are(std::size_t rank, int value) const {
    return std::ranges::all_of(memory_[rank], [&](std::byte b) { return b == std::byte(value); });
  }
  // The first message from a rank to another.
  ByteView message(int from, std::size_t to) {
    return ranks_[to]->links.recv_link(from, Channel::kCollective).try_peek();
  }
  std::optional<Loan> loan(int from, std::size_t to) {
    return loan_in(message(from, to), kLeastLoan);
  }

  static void finish(std::vector<ScheduleRun*> runs) {
    constexpr int kMostTurns = 1000;
    for (int turn = 0; turn < kMostTurns && !runs.empty(); ++turn) {
      std::erase_if(runs, [](ScheduleRun* run) { return run->advance() == Task::Progress::kDone; });
    }
    EXPECT_TRUE(runs.empty()) << "rank " << runs.front()->spec().rank << " waits for ever";
  }

  const Config config_;
  std::vector<std::unique_ptr<LoopbackRank>> ranks_;
  std::vector<Plan> plans_;
  std::vector<Bytes> memory_;
  std::uint32_t slices_ = 0;
};

// So it may change its buffer at once.
TEST_F(Staging, a_root_is_done_when_it_has_copied_once) {
  constexpr std::size_t kBytes = kSlotBytes;
  make(Collective::kBroadcast, 3);
  EXPECT_EQ(run(0, kBytes, 7).advance(), Task::Progress::kDone);
  std::ranges::fill(memory_[0], std::byte{8});
  ASSERT_TRUE(loan(0, 1) && loan(0, 2));
  EXPECT_EQ(loan(0, 1)->offset, loan(0, 2)->offset) << "it was copied twice";
  for (std::size_t rank = 1; rank < 3; ++rank) {
    EXPECT_EQ(run(rank, kBytes, 0).advance(), Task::Progress::kDone);
    EXPECT_TRUE(all_are(rank, 7)) << rank;
  }
}

TEST_F(Staging, what_is_short_is_copied_to_each) {
  constexpr std::size_t kShort = least_fanned_out(FanOut::kOneWay) - 1;
  make(Collective::kBroadcast, 3);
  EXPECT_EQ(run(0, kShort, 7).advance(), Task::Progress::kDone);
  EXPECT_EQ(message(0, 2).size(), opening_bytes(kShort) + kShort);
}

TEST_F(Staging, ranks_that_exchange_copy_once) {
  constexpr std::size_t kPart = least_fanned_out(FanOut::kExchanged);
  make(Collective::kAllGather, 5);
  std::vector<ScheduleRun> runs;
  for (std::size_t rank = 0; rank < 5; ++rank) {
    runs.push_back(run(rank, 5 * kPart, static_cast<int>(rank) + 1, rank * kPart));
  }
  EXPECT_NE(runs[2].advance(), Task::Progress::kDone);
  ASSERT_TRUE(loan(2, 3) && loan(2, 1));
  EXPECT_EQ(loan(2, 3)->offset, loan(2, 1)->offset);
  finish({&runs[0], &runs[1], &runs[2], &runs[3], &runs[4]});
  for (const Bytes& memory : memory_) {
    for (std::size_t i = 0; i < memory.size(); ++i) {
      ASSERT_EQ(memory[i], std::byte(i / kPart + 1)) << i;
    }
  }
}

// With links that hold more than the stage does, it is the stage that it waits for.
TEST_F(Staging, a_root_waits_for_the_slowest_reader_of_what_was_before) {
  constexpr std::size_t kLong = 80 * kSlotBytes;
  make(Collective::kBroadcast, 3);
  ScheduleRun root = run(0, kLong, 7);
  ScheduleRun quick = run(1, kLong, 0);
  ScheduleRun slow = run(2, kLong, 0);
  const auto moves = [](ScheduleRun& run) { return run.advance() == Task::Progress::kSome; };
  while (moves(root) || moves(quick)) continue;
  const std::uint64_t stuck_at = root.position();
  EXPECT_EQ(root.waits_for(), 2);
  EXPECT_EQ(slow.advance(), Task::Progress::kSome);
  EXPECT_EQ(root.advance(), Task::Progress::kSome);
  EXPECT_NE(root.position(), stuck_at);
  finish({&root, &quick, &slow});
  EXPECT_TRUE(all_are(1, 7) && all_are(2, 7));
}

// Its readers might not take the one before it has sent the other.
TEST_F(Staging, a_second_one_in_a_pass_is_copied_to_each_rather_than_waited_for) {
  const auto to = [](int chunk, int peer) { return Step{.src = input(chunk), .send_to = peer}; };
  const auto take = [](int chunk) { return Step{.recv_from = 0, .dst = output(chunk)}; };
  const Schedule sends{.chunk_count = 2, .steps = {to(0, 1), to(0, 2), to(1, 1), to(1, 2)}};
  const Schedule takes{.chunk_count = 2, .steps = {take(0), take(1)}};
  constexpr std::uint32_t kMany = 15;  // so many slices of a chunk that the stage holds one of two
  constexpr std::size_t kLong = 2 * kMany * kSlotBytes;
  make({sends, takes, takes}, kMany);
  ScheduleRun root = run(0, kLong, 7);
  ScheduleRun one = run(1, kLong, 0);
  ScheduleRun other = run(2, kLong, 0);
  EXPECT_EQ(root.advance(), Task::Progress::kSome);
  const auto step = static_cast<std::uint32_t>(root.position() >> 32);
  const auto slice = static_cast<std::uint32_t>(root.position());
  EXPECT_TRUE(step == 2 && slice > 0) << "at slice " << slice << " of step " << step;
  finish({&root, &one, &other});
  EXPECT_TRUE(all_are(1, 7) && all_are(2, 7));
}

}  // namespace
}  // namespace catenary
