#include "src/comm/ledger.h"

#include <gtest/gtest.h>

#include <span>
#include <string>

namespace catenary {
namespace {

Descriptor broadcast(std::uint32_t sequence, int root) {
  Descriptor descriptor;
  descriptor.sequence = sequence;
  descriptor.kind = Collective::kBroadcast;
  descriptor.root = root;
  descriptor.count = 10;
  return descriptor;
}

ByteView bytes(const Descriptor& descriptor) { return std::as_bytes(std::span(&descriptor, 1)); }

void begin(Ledger& ledger, std::uint32_t from, std::uint32_t count) {
  for (std::uint32_t i = 0; i < count; ++i) ledger.begin(broadcast(from + i, 0));
}

TEST(Ledger, proves_who_has_begun_another_collective_of_one_number) {
  Ledger ledger(3);
  begin(ledger, 0, 5);
  EXPECT_FALSE(ledger.judge(1, broadcast(4, 0)));
  EXPECT_FALSE(ledger.judge(1, broadcast(0, 0)));
  const auto proof = ledger.judge(1, broadcast(4, 2));
  ASSERT_TRUE(proof);
  EXPECT_EQ(proof->code(), ErrorCode::kInvalidUsage);
  const std::string text = proof->what();
  EXPECT_NE(text.find("rank 3 has issued Broadcast number 4 (count 10, int8, root 0)"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("rank 1 has issued Broadcast number 4 (count 10, int8, root 2)"),
            std::string::npos)
      << text;
}

TEST(Ledger, blames_nobody_for_what_is_yet_to_begin) {
  Ledger ledger(0);
  EXPECT_FALSE(ledger.judge(1, broadcast(0, 2)));
  EXPECT_FALSE(ledger.judge(1, broadcast(~std::uint32_t{0}, 2)));
  begin(ledger, 0, 5);
  EXPECT_FALSE(ledger.judge(1, broadcast(5, 2)));
  EXPECT_FALSE(ledger.judge_unread(1, broadcast(5, 2)));
  EXPECT_FALSE(ledger.judge_unread(1, broadcast(5000, 2)));
}

TEST(Ledger, takes_what_is_yet_to_begin_for_proof_once_nothing_begins_any_more) {
  Ledger ledger(0);
  begin(ledger, 0, 5);
  ledger.hear(1, bytes(broadcast(4, 0)));
  ledger.hear(2, bytes(broadcast(5, 0)));
  EXPECT_FALSE(ledger.judge_heard());
  const std::optional<Descriptor> last = ledger.close();
  ASSERT_TRUE(last);
  EXPECT_EQ(*last, broadcast(4, 0));
  const auto proof = ledger.judge_heard();
  ASSERT_TRUE(proof);
  const std::string text = proof->what();
  EXPECT_NE(text.find("rank 2 has issued Broadcast number 5"), std::string::npos) << text;
  EXPECT_NE(text.find("rank 0 has parted after 5 collectives"), std::string::npos) << text;
  EXPECT_FALSE(Ledger(0).close());
}

TEST(Ledger, remembers_the_last_ones_only) {
  Ledger ledger(0);
  begin(ledger, 0, Ledger::kKept + 10);
  EXPECT_TRUE(ledger.judge(1, broadcast(10, 2)));
  EXPECT_FALSE(ledger.judge(1, broadcast(9, 2)));
  // But what lies unread since then was in any case not what we took part in.
  const auto proof = ledger.judge_unread(1, broadcast(9, 2));
  ASSERT_TRUE(proof);
  const std::string text = proof->what();
  EXPECT_NE(text.find("rank 1 has issued Broadcast number 9 (count 10, int8, root 2), in which "
                      "rank 0, now at number 138, took no part"),
            std::string::npos)
      << text;
}

TEST(Ledger, goes_on_where_numbers_wrap) {
  Ledger ledger(0);
  begin(ledger, ~std::uint32_t{0} - 4, 10);  // up to 4
  EXPECT_FALSE(ledger.judge(1, broadcast(~std::uint32_t{0}, 0)));
  EXPECT_TRUE(ledger.judge(1, broadcast(~std::uint32_t{0}, 1)));
  EXPECT_TRUE(ledger.judge(1, broadcast(4, 1)));
  EXPECT_FALSE(ledger.judge(1, broadcast(5, 1)));
}

TEST(Ledger, keeps_claims_until_their_number_begins) {
  Ledger ledger(0);
  const Descriptor wrong = broadcast(2, 1);
  const Descriptor right = broadcast(1, 0);
  ledger.hear(4, bytes(wrong));
  ledger.hear(5, bytes(right));
  begin(ledger, 0, 2);
  EXPECT_FALSE(ledger.judge_heard());
  begin(ledger, 2, 1);
  const auto proof = ledger.judge_heard();
  ASSERT_TRUE(proof);
  EXPECT_NE(std::string(proof->what()).find("rank 4"), std::string::npos) << proof->what();
  EXPECT_FALSE(ledger.judge_heard()) << "told twice";
}

TEST(Ledger, takes_no_claim_that_is_no_descriptor_and_not_more_than_fit) {
  Ledger ledger(0);
  const Descriptor wrong = broadcast(0, 1);
  ledger.hear(1, bytes(wrong).first(sizeof wrong - 1));
  ledger.hear(1, {});
  const Descriptor ahead = broadcast(1, 0);
  for (int i = 0; i < 100'000; ++i) ledger.hear(1, bytes(ahead));
  ledger.hear(1, bytes(wrong));  // finds no room
  begin(ledger, 0, 1);
  EXPECT_FALSE(ledger.judge_heard());
  begin(ledger, 1, 1);
  EXPECT_FALSE(ledger.judge_heard());
  ledger.hear(1, bytes(wrong));
  EXPECT_TRUE(ledger.judge_heard());
}

}  // namespace
}  // namespace catenary
