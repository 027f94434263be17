// What a step sends, whatever way its link wants slots to be written: sums are made in the slot, or
// elsewhere and then written.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "src/engine/schedule_run.h"
#include "tests/engine/fake_links.h"

namespace catenary {
namespace {

constexpr std::size_t kBlock = 8192;
constexpr std::size_t kBytes = 20'001;  // more than two blocks, and not whole ones

// A link that may ask for writes, and counts the bytes that came by them.
struct WrittenSend final : SendLink {
  ByteSpan try_acquire(std::size_t bytes) override {
    slot.resize(bytes);
    return slot;
  }
  void write(std::byte* at, ByteView data) override {
    written += data.size();
    std::memcpy(at, data.data(), data.size());
  }
  bool writes_past_caches(std::size_t) const noexcept override { return past_caches; }
  void commit(std::size_t bytes) override { committed = bytes; }
  bool try_flush() override { return true; }

  bool past_caches = false;
  Bytes slot;
  std::size_t written = 0;
  std::size_t committed = 0;
};

Bytes pattern(unsigned factor) {
  Bytes bytes(kBytes);
  for (std::size_t i = 0; i < kBytes; ++i) bytes[i] = static_cast<std::byte>(i * factor % 251);
  return bytes;
}

struct Writes : testing::Test {
  // Runs one step that takes what comes from rank 1 and passes on to rank 2 what it makes of it,
  // which must be `result`; so must what is kept, if the step keeps it.
  void run(PlannedStep step, const Bytes& result, bool past_caches = false) {
    Descriptor opening;
    opening.kind = Collective::kReduceScatter;
    opening.count = kBytes;
    const std::size_t skip = opening_bytes(kBytes);
    recv.message.resize(skip + kBytes);
    std::memcpy(recv.message.data(), &opening, sizeof opening);
    std::ranges::copy(theirs, recv.message.begin() + static_cast<std::ptrdiff_t>(skip));
    step.recv = &recv;
    step.send = &send;
    step.extent = input(0);
    step.recv_from = 1;
    step.send_to = 2;
    step.opens_recv = step.opens_send = true;
    plan.steps = {step};
    plan.sends = {{&send, 2}};
    RunSpec spec;
    spec.plan = &plan;
    spec.kernels =
        &kernels::reduce_kernels(DataType::kUint8, ReduceOp::kSum, kernels::Isa::kScalar);
    spec.input = mine.data();
    spec.output = kept.data();
    spec.slicing = Slicing(Partition::split(kBytes, 1, 1), 65536, 4);
    spec.descriptor = opening;
    spec.past_caches = past_caches;
    EXPECT_EQ(ScheduleRun(spec).advance(), Task::Progress::kDone);
    EXPECT_EQ(send.committed, skip + kBytes);
    EXPECT_TRUE(std::ranges::equal(ByteView(send.slot).subspan(skip), result));
    EXPECT_EQ(kept, step.dst ? result : Bytes(kBytes));
  }
  Bytes sum() const {
    Bytes result(kBytes);
    for (std::size_t i = 0; i < kBytes; ++i) {
      result[i] =
          static_cast<std::byte>(static_cast<unsigned>(mine[i]) + static_cast<unsigned>(theirs[i]));
    }
    return result;
  }

  WrittenSend send;
  FakeRecv recv;
  Plan plan;
  Bytes mine = pattern(3);
  Bytes theirs = pattern(7);
  Bytes kept = Bytes(kBytes);
};

TEST_F(Writes, sums_are_made_in_the_slot) {
  run({.src = input(0)}, sum());
  EXPECT_EQ(send.written, 0u);
}

TEST_F(Writes, sums_are_made_elsewhere_where_the_link_stores_past_the_caches) {
  send.past_caches = true;
  run({.src = input(0)}, sum());
  EXPECT_EQ(send.written, kBytes);
}

TEST_F(Writes, sums_that_are_kept_are_copied) {
  for (const bool past_caches : {false, true}) {
    send = {};
    send.past_caches = past_caches;
    run({.src = input(0), .dst = output(0)}, sum());
    EXPECT_EQ(send.written, kBytes);
  }
}

// What the link finds out of the first block holds for the others.
TEST_F(Writes, sums_that_are_kept_past_the_caches_are_made_in_both_places_at_once) {
  for (const bool received_first : {false, true}) {
    for (const bool past_caches : {false, true}) {
      send = {};
      send.past_caches = past_caches;
      kept.assign(kBytes, std::byte{0});
      run({.src = input(0), .dst = output(0), .received_first = received_first, .for_good = true},
          sum(), true);
      EXPECT_EQ(send.written, past_caches ? kBytes : kBlock);
    }
  }
}

TEST_F(Writes, what_is_handed_on_and_kept_is_both_even_past_the_caches) {
  for (const bool past_caches : {false, true}) {
    for (const bool for_good : {false, true}) {
      send = {};
      kept.assign(kBytes, std::byte{0});
      run({.dst = output(0), .for_good = for_good}, theirs, past_caches);
      EXPECT_EQ(send.written, past_caches && for_good ? kBlock : kBytes);
    }
  }
}

TEST_F(Writes, what_is_handed_on_is_written_by_the_link_where_its_stores_are_others) {
  send.past_caches = true;
  run({.dst = output(0), .for_good = true}, theirs, true);
  EXPECT_EQ(send.written, kBytes);
}

}  // namespace
}  // namespace catenary
