#include "src/engine/descriptor.h"

#include <gtest/gtest.h>

#include "src/base/slot_ring.h"

namespace catenary {
namespace {

Descriptor all_reduce(std::uint64_t count) {
  Descriptor descriptor;
  descriptor.sequence = 7;
  descriptor.kind = Collective::kAllReduce;
  descriptor.type = DataType::kFloat32;
  descriptor.reduction = Reduction::kSum;
  descriptor.count = count;
  return descriptor;
}

TEST(Descriptor, says_what_users_need_to_find_the_call) {
  EXPECT_EQ(describe(all_reduce(100)), "AllReduce number 7 (count 100, float, sum)");
  Descriptor broadcast = all_reduce(5);
  broadcast.kind = Collective::kBroadcast;
  broadcast.reduction = Reduction::kNone;
  broadcast.root = 3;
  EXPECT_EQ(describe(broadcast), "Broadcast number 7 (count 5, float, root 3)");
  broadcast.mark = 0xabc;
  EXPECT_EQ(describe(broadcast), "Broadcast number 7 (count 5, float, root 3, mark 0x00000abc)");
}

TEST(Descriptor, of_garbage_is_described_without_harm) {
  Descriptor garbage;
  garbage.kind = static_cast<Collective>(200);
  garbage.type = static_cast<DataType>(200);
  garbage.reduction = static_cast<Reduction>(200);
  EXPECT_FALSE(describe(garbage).empty());
  EXPECT_NE(all_reduce(1), garbage);
}

TEST(Descriptor, that_does_not_match_is_told_with_both_and_with_the_place) {
  Descriptor later = all_reduce(100);
  later.sequence = 9;
  const std::string text = disagreement(1, all_reduce(100), 4, later).what();
  EXPECT_EQ(
      text.rfind("ranks do not agree since number 7 at the latest: rank 1 has issued AllReduce "
                 "number 7 (count 100, float, sum), but rank 4 has issued AllReduce number 9",
                 0),
      0u)
      << text;
  const Error same = disagreement(1, all_reduce(100), 4, all_reduce(101));
  EXPECT_EQ(same.code(), ErrorCode::kInvalidUsage);
  EXPECT_EQ(std::string(same.what()).rfind("ranks do not agree: rank 1 ", 0), 0u) << same.what();
}

TEST(Descriptor, that_does_not_match_is_told_with_what_to_do_about_it) {
  const auto told = [](const Descriptor& mine, const Descriptor& theirs, const char* remedy) {
    const std::string text = disagreement(0, mine, 1, theirs).what();
    EXPECT_NE(text.find(remedy), std::string::npos) << text;
  };
  told(all_reduce(100), all_reduce(101), "count, type, reduction, root, parts and mark");
  Descriptor other = all_reduce(100);
  other.algorithm = 1;
  told(all_reduce(100), other, "different algorithms");
  other = all_reduce(100);
  other.kind = Collective::kBroadcast;
  told(all_reduce(100), other, "the same operations in the same order");
  Descriptor sent = all_reduce(3);
  sent.kind = Collective::kSend;
  Descriptor longer = sent;
  longer.count = 4;
  told(sent, longer, "with the same count and type");
  Descriptor expected = longer;
  expected.kind = Collective::kRecv;
  told(expected, sent, "with the same count and type");
}

TEST(Descriptor, matches_only_its_equal) {
  EXPECT_EQ(all_reduce(100), all_reduce(100));
  EXPECT_NE(all_reduce(100), all_reduce(101));
  Descriptor other = all_reduce(100);
  other.type = DataType::kInt32;
  EXPECT_NE(all_reduce(100), other);
  other = all_reduce(100);
  other.reduction = Reduction::kMax;
  EXPECT_NE(all_reduce(100), other);
  other = all_reduce(100);
  other.algorithm = 1;
  EXPECT_NE(all_reduce(100), other);
  other = all_reduce(100);
  other.mark = 1;
  EXPECT_NE(all_reduce(100), other);
}

// A message that opens an operation is one cache line while its data fits beside the descriptor and
// the slot's own eight bytes, and lies in the head of its slot while it is compact, and as long as
// its data can begin with a line there.
TEST(Descriptor, leaves_room_for_short_data_in_the_head_of_its_slot) {
  EXPECT_EQ(opening_bytes(0), kDescriptorBytes);
  EXPECT_EQ(opened_bytes(kOneLineDataBytes), 56u);
  EXPECT_EQ(opening_bytes(kCompactDataBytes), kDescriptorBytes);
  EXPECT_EQ(opening_bytes(kCompactDataBytes + 1), kHeadDescriptorBytes);
  EXPECT_EQ((offsetof(SlotHead, data) + kHeadDescriptorBytes) % alignof(SlotHead), 0u);
  EXPECT_EQ(opened_bytes(kHeadDataBytes), kInlineBytes);
  EXPECT_EQ(opening_bytes(kHeadDataBytes + 1), kPaddedDescriptorBytes);
}

}  // namespace
}  // namespace catenary
