#include <gtest/gtest.h>

#include <array>

#include "src/comm/overlap.h"

namespace catenary {
namespace {

constexpr int kRanks = 4;
constexpr std::size_t kCount = 8;

// Of int32, with memory for all parts of all ranks, twice.
class Overlaps : public testing::Test {
 protected:
  OperationRequest request(Collective kind, std::size_t input, std::size_t output) {
    OperationRequest made;
    made.kind = kind;
    made.count = kCount;
    made.type = DataType::kInt32;
    made.input = &memory_[input];
    made.output = &memory_[output];
    return made;
  }
  // Elements; of rank 1, who is no root.
  static std::size_t touched(const OperationRequest& request, int rank = 1) {
    const Overlap overlap = overlap_of(request, rank, kRanks);
    return touched_bytes(request, overlap, rank, kRanks) / sizeof(int);
  }

  static constexpr std::size_t kApart = kCount * kRanks;
  std::array<int, 2 * kApart> memory_{};
};

TEST_F(Overlaps, are_none_where_buffers_only_touch) {
  EXPECT_EQ(overlap_of(request(Collective::kAllReduce, 0, kCount), 1, kRanks), Overlap::kNone);
  EXPECT_EQ(overlap_of(request(Collective::kAllReduce, kCount, 0), 1, kRanks), Overlap::kNone);
  EXPECT_EQ(overlap_of(request(Collective::kAllGather, 0, kCount), 1, kRanks), Overlap::kNone);
  EXPECT_EQ(overlap_of(request(Collective::kAllGather, kApart, 0), 1, kRanks), Overlap::kNone);
}

TEST_F(Overlaps, are_in_place_where_documented_and_askew_elsewhere) {
  const auto of = [&](Collective kind, std::size_t input, std::size_t output) {
    return overlap_of(request(kind, input, output), 1, kRanks);
  };
  EXPECT_EQ(of(Collective::kAllReduce, 0, 0), Overlap::kInPlace);
  EXPECT_EQ(of(Collective::kAllReduce, 0, 1), Overlap::kAskew);
  EXPECT_EQ(of(Collective::kAllGather, kCount, 0), Overlap::kInPlace);
  EXPECT_EQ(of(Collective::kAllGather, 0, 0), Overlap::kAskew);
  EXPECT_EQ(of(Collective::kReduceScatter, 0, kCount), Overlap::kInPlace);
  EXPECT_EQ(of(Collective::kReduceScatter, 0, 2 * kCount), Overlap::kAskew);
}

TEST_F(Overlaps, count_what_all_ranks_touch_once_where_it_is_input_and_output) {
  const auto apart = [&](Collective kind) { return touched(request(kind, 0, kApart)); };
  EXPECT_EQ(apart(Collective::kAllReduce), kRanks * 2 * kCount);
  EXPECT_EQ(touched(request(Collective::kAllReduce, 0, 0)), kRanks * kCount);
  EXPECT_EQ(apart(Collective::kAllGather), kRanks * (kCount + kApart));
  EXPECT_EQ(touched(request(Collective::kAllGather, kCount, 0)), kRanks * kApart);
  EXPECT_EQ(apart(Collective::kReduceScatter), kRanks * (kApart + kCount));
  EXPECT_EQ(touched(request(Collective::kReduceScatter, 0, kCount)), kRanks * kApart);
  EXPECT_EQ(apart(Collective::kAllToAll), kRanks * 2 * kApart);
}

TEST_F(Overlaps, count_with_a_root_what_is_there_once_a_single_time) {
  const auto apart = [&](Collective kind, int rank) {
    return touched(request(kind, 0, kApart), rank);
  };
  const auto in_place = [&](Collective kind, int rank) {
    return touched(request(kind, 0, 0), rank);
  };
  EXPECT_EQ(in_place(Collective::kBroadcast, 0), kRanks * kCount);
  EXPECT_EQ(apart(Collective::kBroadcast, 0), (kRanks + 1) * kCount) << "the root has a copy";
  EXPECT_EQ(apart(Collective::kBroadcast, 1), kRanks * kCount) << "has no input";
  EXPECT_EQ(in_place(Collective::kReduce, 0), kRanks * kCount);
  EXPECT_EQ(apart(Collective::kReduce, 0), (kRanks + 1) * kCount);
  EXPECT_EQ(apart(Collective::kGather, 0), 2 * kApart);
  EXPECT_EQ(apart(Collective::kScatter, 0), 2 * kApart);
}

}  // namespace
}  // namespace catenary
