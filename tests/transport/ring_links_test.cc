// What both ends of a ring copy of memory that only the kernel reaches, apart from any transport.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <numeric>
#include <thread>

#include "src/base/error.h"
#include "src/base/shared_copy.h"
#include "src/transport/process_memory.h"
#include "src/transport/ring_arena.h"

namespace catenary {
namespace {

constexpr std::size_t kPiece = SharedCopy::kMostPieceBytes;
constexpr Channel kChannel = Channel::kCollective;

TransportContext context_of(int rank, std::optional<KernelCopies> where_they_pay = {}) {
  TransportContext context;
  context.rank = rank;
  context.nranks = 2;
  context.least_fetched = 32768;
  context.where_they_pay = where_they_pay;
  return context;
}

Bytes numbered(std::size_t bytes, unsigned first = 0) {
  Bytes all(bytes);
  for (std::size_t i = 0; i < bytes; ++i) all[i] = static_cast<std::byte>(first + i * 7 + i / 251);
  return all;
}

// A process as its neighbours know it: by a heap of ours that begins with its token.
struct Neighbour {
  Neighbour() {
    std::iota(token.begin(), token.end(), static_cast<unsigned char>(1));
    std::memcpy(address.token.data(), token.data(), token.size());
    address.base = reinterpret_cast<std::uintptr_t>(token.data());
    address.process = static_cast<std::uint32_t>(::getpid());
  }
  std::array<unsigned char, SharedHeap::kTokenBytes> token;
  HeapAddress address;
};

TEST(ProcessMemoryTest, is_read_and_written) {
  const Neighbour neighbour;
  const Bytes from = numbered(100'001);
  for (const ProcessMemory& memory : {ProcessMemory::own(), ProcessMemory::of(neighbour.address)}) {
    Bytes to(from.size());
    ASSERT_EQ(memory.try_write(reinterpret_cast<std::uintptr_t>(to.data()), from.data(), to.size()),
              0);
    EXPECT_EQ(to, from);
    Bytes back(from.size());
    ASSERT_EQ(memory.try_read(back.data(), reinterpret_cast<std::uintptr_t>(to.data()), to.size()),
              0);
    EXPECT_EQ(back, from);
  }
}

TEST(ProcessMemoryTest, is_not_written_where_another_process_has_the_number) {
  Neighbour neighbour;
  const ProcessMemory memory = ProcessMemory::of(neighbour.address);
  neighbour.token[3] ^= 1;
  const Bytes from = numbered(1000);
  Bytes to(from.size());
  EXPECT_EQ(memory.try_write(reinterpret_cast<std::uintptr_t>(to.data()), from.data(), to.size()),
            ESRCH);
  EXPECT_EQ(to, Bytes(from.size()));
  EXPECT_THROW(ProcessMemory::of(neighbour.address), Error);
}

TEST(ProcessMemoryTest, says_why_it_is_not_written) {
  const Bytes from(10);
  EXPECT_EQ(ProcessMemory::own().try_write(0, from.data(), from.size()), EFAULT);
  EXPECT_EQ(ProcessMemory().try_write(0, from.data(), from.size()), ESRCH);
}

class RingLinks : public testing::Test {
 protected:
  RingLinks() { meet({}); }
  void meet(std::optional<KernelCopies> where_they_pay) {
    const RingArenaShape shape = arena_shape(context_of(0), 2);
    arena_ = std::make_shared<RingArena>(Mapping::anonymous(shape.bytes()), shape, false);
    sender_.emplace(arena_, std::vector{0, 1}, context_of(0, where_they_pay));
    receiver_.emplace(arena_, std::vector{0, 1}, context_of(1));
  }
  void connect(const ProcessMemory& giver_reaches, bool is_crowded = false) {
    receiver_->note_crowding(is_crowded);
    from_ = receiver_->listen({0, kChannel}, {}, {{}, ProcessMemory::own()});
    to_ = sender_->connect({1, kChannel}, {}, [giver_reaches] {
      return PeerReach{{}, giver_reaches};
    });
  }
  void lend(ByteView memory) {
    const std::optional<Loan> loan = to_->try_lend(memory, {.fetching = Fetching::kByReceiver});
    ASSERT_TRUE(loan);
    const ByteSpan slot = to_->try_acquire(sizeof *loan);
    std::memcpy(slot.data(), &*loan, sizeof *loan);
    to_->commit(sizeof *loan);
  }
  ByteView borrow(std::byte* into, bool together = true) {
    Loan loan;
    const ByteView message = from_->try_peek();
    std::memcpy(&loan, message.data(), sizeof loan);
    return from_->borrow(loan, into, together);
  }
  // The receiver's side of the copy, to be used in its place.
  SharedCopyOwner copy() {
    std::byte* const at = arena_->ring(0, 1, kChannel) + SlotRingShape::kSharedCopy;
    return SharedCopyOwner(*reinterpret_cast<SharedCopyWords*>(at));
  }
  static SharedCopyOffer by_kernel(const Bytes& given, const Bytes& taken) {
    return {.from = reinterpret_cast<std::uintptr_t>(given.data()),
            .to = reinterpret_cast<std::uintptr_t>(taken.data()),
            .bytes = given.size(),
            .by_kernel = true};
  }
  // The sender lends, and the receiver begins to copy.
  SharedCopyOwner lend_and_open(const Bytes& given, const Bytes& taken) {
    lend(given);
    EXPECT_FALSE(to_->try_help({})) << "nobody copies yet";
    SharedCopyOwner owner = copy();
    owner.open(by_kernel(given, taken));
    return owner;
  }

  void expect_at_once(bool together) {
    const Bytes given = numbered(2 * kPiece);
    Bytes taken(given.size());
    lend(given);
    EXPECT_EQ(borrow(taken.data(), together).data(), taken.data());
    EXPECT_EQ(taken, given);
    EXPECT_EQ(from_->copy_together(taken, {taken.data(), false}), RecvLink::Copied::kDone);
    EXPECT_EQ(copy().giver(), 0u);
  }

  std::shared_ptr<RingArena> arena_;
  std::optional<ArenaSeat> sender_;
  std::optional<ArenaSeat> receiver_;
  std::unique_ptr<RecvLink> from_;
  std::unique_ptr<SendLink> to_;
};

// Who tells nothing of how quick the kernel is here has it copy whatever it can.
TEST_F(RingLinks, leave_copies_to_the_kernel_where_it_is_quick_enough) {
  constexpr auto kNo = [] { return false; };
  constexpr auto kYes = [] { return true; };
  struct Case {
    std::optional<KernelCopies> where_they_pay;
    bool by_receiver;
    bool by_both;
  };
  for (const Case& expected :
       {Case{{}, true, true}, Case{KernelCopies{kNo, kNo}, false, false},
        Case{KernelCopies{kNo, kYes}, false, true}, Case{KernelCopies{kYes, kYes}, true, true}}) {
    meet(expected.where_they_pay);
    connect(ProcessMemory::own());
    const Bytes memory(2 * kPiece);
    const auto is_lent = [&](Fetching fetching, std::size_t bytes) {
      return to_->try_lend(ByteView(memory).first(bytes), {.fetching = fetching}).has_value();
    };
    EXPECT_FALSE(is_lent(Fetching::kNever, memory.size()));
    EXPECT_EQ(is_lent(Fetching::kByReceiver, memory.size()), expected.by_receiver);
    EXPECT_EQ(is_lent(Fetching::kByBoth, memory.size()), expected.by_both);
    EXPECT_EQ(is_lent(Fetching::kByBoth, RecvLink::kLeastCopiedTogether - 1), expected.by_receiver)
        << "too short for two";
  }
}

// Its peer would copy alone what both should.
TEST_F(RingLinks, do_not_leave_to_a_slow_kernel_what_they_may_not_write) {
  meet(KernelCopies{[] { return false; }, [] { return true; }});
  connect(ProcessMemory());
  const Bytes given = numbered(2 * kPiece);
  Bytes taken(given.size());
  const SendLink::Terms both = {.fetching = Fetching::kByBoth};
  ASSERT_TRUE(to_->try_lend(given, both));
  SharedCopyOwner owner = copy();
  owner.open(by_kernel(given, taken));
  EXPECT_FALSE(to_->try_help({}));
  EXPECT_FALSE(to_->try_lend(given, both));
}

TEST_F(RingLinks, who_has_lent_private_memory_writes_pieces_of_it) {
  connect(ProcessMemory::own());
  const Bytes given = numbered(2 * kPiece + 77);
  Bytes taken(given.size());
  SharedCopyOwner copy = lend_and_open(given, taken);
  for (int piece = 0; piece < 4; ++piece) EXPECT_TRUE(to_->try_help({}));
  EXPECT_FALSE(to_->try_help({})) << "there are four";
  copy.close();
  EXPECT_FALSE(copy.is_helped());
  EXPECT_FALSE(copy.lacks_some());
  EXPECT_EQ(taken, given);
}

TEST_F(RingLinks, who_may_not_write_says_so_once) {
  Neighbour neighbour;
  connect(ProcessMemory::of(neighbour.address));
  neighbour.token[0] ^= 1;
  const Bytes given = numbered(2 * kPiece);
  Bytes taken(given.size());
  SharedCopyOwner copy = lend_and_open(given, taken);
  EXPECT_TRUE(to_->try_help({}));
  EXPECT_FALSE(to_->try_help({})) << "it has been refused";
  copy.close();
  EXPECT_FALSE(copy.is_helped());
  EXPECT_TRUE(copy.lacks_some());
  EXPECT_EQ(taken, Bytes(given.size()));
}

TEST_F(RingLinks, who_reaches_no_memory_takes_no_piece) {
  connect(ProcessMemory());
  const Bytes given = numbered(2 * kPiece);
  Bytes taken(given.size());
  SharedCopyOwner copy = lend_and_open(given, taken);
  EXPECT_FALSE(to_->try_help({}));
  copy.close();
  EXPECT_FALSE(copy.is_helped());
}

TEST_F(RingLinks, who_does_not_want_help_has_all_of_it_at_once) {
  connect(ProcessMemory::own());
  expect_at_once(false);
}

TEST_F(RingLinks, who_shares_cores_with_the_lender_is_not_helped) {
  connect(ProcessMemory::own(), true);
  expect_at_once(true);
}

// Many copies of odd lengths, every byte, until the thread of the lender has had its part in enough
// of them: which it makes, or fails to make.
class RingLinksTogether : public RingLinks {
 protected:
  void copy_many(const ProcessMemory& giver_reaches, int least_helped) {
    connect(giver_reaches);
    std::atomic<bool> over = false;
    std::atomic<int> helped = 0;
    std::atomic<bool> is_lent = false;
    std::thread giver([&] {
      while (!over.load()) {
        if (is_lent.load()) {  // until then the link is the other thread's
          if (to_->try_help({})) ++helped;
          if (to_->try_flush()) is_lent = false;
        }
        std::this_thread::yield();
      }
    });
    for (unsigned round = 0; round < 30 || helped.load() < least_helped; ++round) {
      const Bytes given = numbered(3 * kPiece + round % 1000, round);
      Bytes taken(given.size() + 1, std::byte{0xee});
      lend(given);
      is_lent = true;
      const ByteView borrowed = borrow(taken.data());
      while (from_->copy_together(borrowed, {taken.data(), false}) != RecvLink::Copied::kDone) {
        std::this_thread::yield();
      }
      ASSERT_EQ(std::memcmp(taken.data(), given.data(), given.size()), 0) << "round " << round;
      ASSERT_EQ(taken.back(), std::byte{0xee}) << "more was written";
      from_->release();
      while (is_lent.load()) std::this_thread::yield();
    }
    over = true;
    giver.join();
  }
};

TEST_F(RingLinksTogether, copy_all_of_it) { copy_many(ProcessMemory::own(), 20); }

TEST_F(RingLinksTogether, do_without_who_may_not_write) {
  Neighbour neighbour;
  const ProcessMemory giver_reaches = ProcessMemory::of(neighbour.address);
  neighbour.token[0] ^= 1;
  copy_many(giver_reaches, 1);
}

}  // namespace
}  // namespace catenary
