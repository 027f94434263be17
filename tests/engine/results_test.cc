// That two ranks which all-reduce in memory of the heap really put sums into each other's, and
// those that gather their parts: seen by driving them in turns.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "src/base/config.h"
#include "src/collective/algorithms.h"
#include "src/engine/schedule_run.h"
#include "tests/engine/loopback_rank.h"

namespace catenary {
namespace {

constexpr std::size_t kBytes = std::size_t{3}
                               << 17;  // of an input or output; halves of three slots
constexpr std::size_t kHeapBytes = std::size_t{1} << 21;

class Results : public testing::TestWithParam<bool> {
 protected:
  Results() {
    for (int rank = 0; rank < 2; ++rank) {
      std::memset(input(rank), rank + 1, kBytes);
      const Place at{.rank = rank, .ranks = 2};
      const Schedule schedule = schedule_of(ring_, at);
      plans_[rank] = compile(schedule, lendings(ring_, at, schedule), rank, Channel::kCollective,
                             false, ranks_[static_cast<std::size_t>(rank)]->links);
    }
  }
  bool in_place() const { return GetParam(); }
  std::byte* input(int rank) const { return heap_.data() + (2 * rank + 1) * kBytes; }
  std::byte* output(int rank) const { return in_place() ? input(rank) : input(rank) + kBytes; }
  // Whether all of a rank's half of somebody's output is the sum.
  bool is_summed(int rank, int half) const {
    const std::byte* const begin = output(rank) + static_cast<std::size_t>(half) * kBytes / 2;
    return std::all_of(begin, begin + kBytes / 2, [](std::byte b) { return b == std::byte{3}; });
  }
  RunSpec spec_of(int rank) const {
    RunSpec spec;
    spec.plan = &plans_[rank];
    spec.input = input(rank);
    spec.output = output(rank);
    spec.in_place = in_place();
    spec.rank = rank;
    spec.least_loan = kLeastLoan;
    spec.descriptor.kind = Collective::kAllReduce;
    spec.descriptor.type = DataType::kUint8;
    spec.descriptor.count = kBytes;
    spec.slicing = Slicing(Partition::split(kBytes, 1, 2), 65536, 15);
    spec.kernels =
        &kernels::reduce_kernels(DataType::kUint8, ReduceOp::kSum, kernels::Isa::kScalar);
    return spec;
  }

  const Algorithm& ring_ = *find_algorithm(Collective::kAllReduce, "ring");
  const Config config_;
  const Mapping heap_ = Mapping::anonymous(kHeapBytes);
  const std::vector<std::unique_ptr<LoopbackRank>> ranks_ =
      ranks_of(2, config_, {heap_.data(), kHeapBytes, -1});
  Plan plans_[2];
};

TEST_P(Results, are_there_before_who_wants_them_looks) {
  ScheduleRun first(spec_of(0));
  ScheduleRun second(spec_of(1));
  first.advance();  // lends the second half, and has nothing to sum yet
  EXPECT_FALSE(is_summed(0, 0) || is_summed(0, 1));
  second.advance();  // lends the first one, and sums the second
  EXPECT_TRUE(is_summed(1, 1));
  EXPECT_TRUE(is_summed(0, 1)) << "it is not where the other rank keeps it";
  first.advance();
  EXPECT_TRUE(is_summed(0, 0) && is_summed(1, 0));
  EXPECT_EQ(second.advance(), Task::Progress::kDone);
  EXPECT_EQ(first.advance(), Task::Progress::kDone);
}

// Which past the caches is quicker than to read each other's.
TEST(Exchanges, put_each_ones_part_into_both_outputs) {
  const Algorithm& ring = *find_algorithm(Collective::kAllGather, "ring");
  const Config config;
  const Mapping heap = Mapping::anonymous(2 * 3 * kBytes);
  const auto ranks = ranks_of(2, config, {heap.data(), 2 * 3 * kBytes, -1});
  const auto input = [&](int rank) {
    return heap.data() + static_cast<std::size_t>(3 * rank) * kBytes;
  };
  const auto holds = [&](int rank, int part) {  // in its output
    const std::byte* const begin = input(rank) + static_cast<std::size_t>(1 + part) * kBytes;
    return std::all_of(begin, begin + kBytes,
                       [&](std::byte b) { return b == static_cast<std::byte>(part + 1); });
  };
  Plan plans[2];
  const auto run_of = [&](int rank) {
    std::memset(input(rank), rank + 1, kBytes);
    const Place at{.rank = rank, .ranks = 2};
    const Schedule schedule = schedule_of(ring, at);
    plans[rank] = compile(schedule, lendings(ring, at, schedule), rank, Channel::kCollective, false,
                          ranks[static_cast<std::size_t>(rank)]->links);
    RunSpec spec;
    spec.plan = &plans[rank];
    spec.input = input(rank);
    spec.output = input(rank) + kBytes;
    spec.rank = rank;
    spec.least_loan = kLeastLoan;
    spec.past_caches = true;
    spec.descriptor.kind = Collective::kAllGather;
    spec.descriptor.count = kBytes;
    spec.slicing = Slicing(partition_for(Collective::kAllGather, kBytes, 1, 2), kBytes / 3, 15);
    return ScheduleRun(spec);
  };
  ScheduleRun first = run_of(0);
  ScheduleRun second = run_of(1);
  EXPECT_TRUE(first.is_open_to_writers());
  first.advance();
  EXPECT_FALSE(holds(0, 0)) << "it was kept alone";
  second.advance();
  EXPECT_TRUE(holds(1, 1) && holds(0, 1));
  EXPECT_FALSE(holds(1, 0)) << "it was read";
  first.advance();
  EXPECT_TRUE(holds(0, 0) && holds(1, 0));
  EXPECT_EQ(second.advance(), Task::Progress::kDone);
  EXPECT_EQ(first.advance(), Task::Progress::kDone);
}

INSTANTIATE_TEST_SUITE_P(Either, Results, testing::Bool(), [](const auto& place) {
  return place.param ? "in_place" : "out_of_place";
});

}  // namespace
}  // namespace catenary
