#include "src/base/shared_copy.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

namespace catenary {
namespace {

constexpr std::size_t kPiece = SharedCopy::kMostPieceBytes;
constexpr std::size_t kShort = 4096;  // is one piece
constexpr std::uint32_t kProcess = 7;

const auto any = [](auto...) { return true; };

class SharedCopyTest : public testing::Test {
 protected:
  void open(std::uint64_t bytes, bool past_caches = false) {
    owner_.open({.from = 1000, .to = 2000, .bytes = bytes, .past_caches = past_caches});
  }

  SharedCopyWords words_{};
  SharedCopyOwner owner_{words_};
  SharedCopyGiver giver_{words_};
};

TEST_F(SharedCopyTest, is_made_alone_if_nobody_helps) {
  EXPECT_FALSE(giver_.take(kProcess, any)) << "nothing was offered";
  open(4 * kPiece - 5);
  std::vector<SharedPiece> pieces;
  while (const auto piece = owner_.take()) pieces.push_back(*piece);
  ASSERT_EQ(pieces.size(), 4u);
  EXPECT_EQ(pieces[1].at, kPiece);
  EXPECT_EQ(pieces[1].bytes, kPiece);
  EXPECT_EQ(pieces[3].at, 3 * kPiece);
  EXPECT_EQ(pieces[3].bytes, kPiece - 5);
  owner_.close();
  EXPECT_FALSE(owner_.is_helped());
  EXPECT_FALSE(giver_.take(kProcess, any)) << "it is over";
}

TEST_F(SharedCopyTest, each_piece_is_one_sides) {
  open(4 * kPiece, true);
  EXPECT_EQ(owner_.take()->at, 0u);
  const auto helped = giver_.take(kProcess, any);
  ASSERT_TRUE(helped);
  EXPECT_EQ(helped->from, 1000 + 3 * kPiece) << "from the end";
  EXPECT_EQ(helped->to, 2000 + 3 * kPiece);
  EXPECT_EQ(helped->bytes, kPiece);
  EXPECT_TRUE(helped->past_caches);
  EXPECT_EQ(owner_.take()->at, kPiece);
  owner_.close();
  EXPECT_FALSE(giver_.take(kProcess, any)) << "the last piece was not to be given away";
  EXPECT_TRUE(owner_.is_helped());
  EXPECT_EQ(owner_.giver(), kProcess);
  giver_.done();
  EXPECT_FALSE(owner_.is_helped());
}

TEST_F(SharedCopyTest, who_helps_looks_at_the_offer_first) {
  open(4 * kPiece);
  const auto refuse = [](const SharedCopyOffer& whole) {
    EXPECT_EQ(whole.from, 1000u);
    EXPECT_EQ(whole.to, 2000u);
    EXPECT_EQ(whole.bytes, 4 * kPiece);
    EXPECT_FALSE(whole.by_kernel);
    EXPECT_EQ(whole.combination, 0u);
    return false;
  };
  EXPECT_FALSE(giver_.take(kProcess, refuse));
  owner_.close();
  EXPECT_FALSE(owner_.is_helped()) << "no piece was taken";
}

TEST_F(SharedCopyTest, says_what_it_is_combined_with) {
  owner_.open({.from = 1000,
               .to = 2000,
               .bytes = 4 * kPiece,
               .operand = 3000,
               .combination = 17,
               .operand_last = true});
  EXPECT_EQ(owner_.take()->at, 0u);
  const auto helped = giver_.take(kProcess, any);
  ASSERT_TRUE(helped);
  EXPECT_EQ(helped->operand, 3000 + 3 * kPiece);
  EXPECT_EQ(helped->combination, 17u);
  EXPECT_TRUE(helped->operand_last);
  owner_.take();
  owner_.close();
  giver_.done();
  open(kPiece);
  EXPECT_EQ(giver_.take(kProcess, any)->combination, 0u) << "that was the last one's";
}

TEST_F(SharedCopyTest, that_is_short_has_two_pieces) {
  constexpr std::size_t kHalf = 5 * 4096;
  owner_.open({.from = 1000, .to = 2000, .bytes = 2 * kHalf - 77, .by_kernel = true});
  const auto helped = giver_.take(kProcess, any);
  ASSERT_TRUE(helped);
  EXPECT_EQ(helped->from, 1000 + kHalf);
  EXPECT_EQ(helped->bytes, kHalf - 77);
  EXPECT_TRUE(helped->by_kernel);
  EXPECT_FALSE(helped->past_caches);
  EXPECT_EQ(giver_.take(kProcess, any)->from, 1000u) << "the next one from the end";
  EXPECT_FALSE(owner_.take());
  open(1);
  EXPECT_EQ(owner_.take()->bytes, 1u);
  EXPECT_FALSE(giver_.take(kProcess, any));
}

// Half as many for each side, and all of one length but the last.
TEST_F(SharedCopyTest, has_an_even_number_of_equal_pieces) {
  for (const std::uint64_t pages : {64, 65, 96, 160, 161, 1000}) {
    const std::uint64_t bytes = pages * 4096;
    const std::size_t piece = SharedCopy::piece_bytes(bytes);
    EXPECT_LE(piece, kPiece);
    EXPECT_EQ(piece % 4096, 0u);
    const std::uint64_t pieces = SharedCopy::pieces_of(bytes);
    EXPECT_EQ(pieces % 2, 0u) << pages;
    EXPECT_LT(pieces * piece - bytes, pieces * 4096) << pages;
  }
}

TEST_F(SharedCopyTest, tells_of_a_piece_that_could_not_be_copied) {
  open(4 * kPiece);
  EXPECT_TRUE(owner_.take());
  EXPECT_TRUE(giver_.take(kProcess, any));
  EXPECT_TRUE(giver_.take(kProcess, any));
  EXPECT_TRUE(owner_.take());
  owner_.close();
  giver_.refuse();
  EXPECT_TRUE(owner_.is_helped()) << "it has another one";
  giver_.done();
  EXPECT_FALSE(owner_.is_helped());
  EXPECT_TRUE(owner_.lacks_some());
  open(kPiece);
  EXPECT_FALSE(owner_.lacks_some()) << "that was the copy before";
}

// Its owner has waited for long enough.
TEST_F(SharedCopyTest, a_piece_that_is_given_up_is_told_apart) {
  open(2 * kPiece);
  const auto piece = giver_.take(kProcess, any);
  ASSERT_TRUE(piece);
  EXPECT_TRUE(giver_.is_wanted(*piece));
  owner_.close();
  EXPECT_TRUE(giver_.is_wanted(*piece)) << "it is waited for";
  owner_.cancel();
  EXPECT_FALSE(giver_.is_wanted(*piece));
  EXPECT_FALSE(giver_.take(kProcess, any));
  open(2 * kPiece);
  EXPECT_FALSE(giver_.is_wanted(*piece)) << "that is another copy";
}

TEST_F(SharedCopyTest, begins_anew_each_time) {
  open(2 * kPiece);
  EXPECT_TRUE(giver_.take(kProcess, any));
  giver_.done();
  EXPECT_TRUE(owner_.take());
  EXPECT_FALSE(owner_.take());
  EXPECT_FALSE(giver_.take(kProcess, any));
  owner_.close();
  EXPECT_FALSE(owner_.is_helped());
  open(kShort);
  const auto piece = giver_.take(kProcess, any);
  ASSERT_TRUE(piece);
  EXPECT_EQ(piece->from, 1000u);
  EXPECT_FALSE(owner_.take());
  owner_.close();
  EXPECT_TRUE(owner_.is_helped());
  giver_.done();
  EXPECT_FALSE(owner_.is_helped());
}

TEST_F(SharedCopyTest, has_no_pieces_before_the_first_is_open) {
  words_.bytes.store(2 * kPiece);  // as open() begins
  EXPECT_FALSE(giver_.take(kProcess, any));
  open(2 * kPiece);
  EXPECT_TRUE(giver_.take(kProcess, any));
}

// What the other side writes there is not believed.
TEST_F(SharedCopyTest, a_damaged_ticket_ends_it) {
  open(2 * kPiece);
  words_.ticket.store(~std::uint64_t{0});
  EXPECT_FALSE(owner_.take());
  owner_.close();
  words_.ticket.store(std::uint64_t{5} << 32 | 77);
  EXPECT_FALSE(giver_.take(kProcess, any)) << "a piece beyond the end";
}

TEST_F(SharedCopyTest, a_ticket_that_is_turned_back_gives_no_piece_before_the_beginning) {
  open(kShort);
  EXPECT_TRUE(giver_.take(kProcess, any));
  words_.ticket.store(std::uint64_t{1} << 32);
  EXPECT_FALSE(giver_.take(kProcess, any)) << "its only piece was taken";
  words_.bytes.store(8 * kPiece);
  EXPECT_FALSE(giver_.take(kProcess, any));
  words_.ticket.store(std::uint64_t{1} << 32 | 1);
  EXPECT_EQ(giver_.take(kProcess, any)->from, 1000 + 6 * kPiece);
}

// Both at once, many copies of odd lengths, every byte; until the other thread, which may have no
// core for a while, has had its part in enough of them.
TEST_F(SharedCopyTest, two_threads_copy_all_of_it) {
  constexpr std::size_t kMost = 3 * kPiece;
  constexpr int kCopies = 2000;
  constexpr int kHelped = 200;
  std::vector<unsigned char> from(kMost);
  std::vector<unsigned char> to(kMost);
  std::iota(from.begin(), from.end(), static_cast<unsigned char>(0));
  std::atomic<bool> over = false;
  std::atomic<int> helped = 0;
  std::thread other([&] {
    while (!over.load()) {
      const auto piece = giver_.take(kProcess, any);
      if (!piece) {
        std::this_thread::yield();
        continue;
      }
      std::memcpy(to.data() + piece->to, from.data() + piece->from, piece->bytes);
      helped.fetch_add(1, std::memory_order_relaxed);
      giver_.done();
    }
  });
  std::minstd_rand random(1);
  for (int copy = 0; copy < kCopies || helped.load(std::memory_order_relaxed) < kHelped; ++copy) {
    const std::size_t bytes = 1 + random() % kMost;
    std::fill(to.begin(), to.end(), static_cast<unsigned char>(0xee));
    owner_.open({.bytes = bytes});
    if (copy % 2 == 0) std::this_thread::yield();
    while (const auto piece = owner_.take()) {
      std::memcpy(to.data() + piece->at, from.data() + piece->at, piece->bytes);
    }
    owner_.close();
    while (owner_.is_helped()) std::this_thread::yield();
    ASSERT_EQ(std::memcmp(to.data(), from.data(), bytes), 0) << "copy " << copy;
    if (bytes < kMost) {
      ASSERT_EQ(to[bytes], 0xee) << "more was written";
    }
  }
  over = true;
  other.join();
}

}  // namespace
}  // namespace catenary
