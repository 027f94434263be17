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
    past_caches = past_caches != changes_its_mind;
    changes_its_mind = false;
    std::memcpy(at, data.data(), data.size());
  }
  bool writes_past_caches(std::size_t) const noexcept override { return past_caches; }
  void commit(std::size_t bytes) override {
    committed = bytes;
    ++commits;
    if (watched != nullptr) watched_at_commit = *watched;
  }
  bool try_flush() override { return true; }

  bool past_caches = false;
  bool changes_its_mind = false;  // at the next write
  Bytes slot;
  std::size_t written = 0;
  std::size_t committed = 0;
  int commits = 0;
  const std::byte* watched = nullptr;  // a byte, and what it was when the message went
  std::byte watched_at_commit{};
};

// Something of which the order of operands matters.
void subtract(void* out, const void* a, const void* b, std::size_t count) {
  const auto minus = [](std::byte left, std::byte right) {
    return static_cast<std::byte>(static_cast<unsigned>(left) - static_cast<unsigned>(right));
  };
  const auto* const from = static_cast<const std::byte*>(a);
  std::transform(from, from + count, static_cast<const std::byte*>(b), static_cast<std::byte*>(out),
                 minus);
}
void subtract_streaming(void* out, const void* const* sources, int /*two*/, std::size_t count) {
  subtract(out, sources[0], sources[1], count);
}
void subtract_twice(void* out, void* twin, const void* a, const void* b, std::size_t count,
                    kernels::TwinStores /*stores*/) {
  subtract(out, a, b, count);
  subtract(twin, a, b, count);
}

Bytes pattern(unsigned factor) {
  Bytes bytes(kBytes);
  for (std::size_t i = 0; i < kBytes; ++i) bytes[i] = static_cast<std::byte>(i * factor % 251);
  return bytes;
}

struct Writes : testing::Test {
  // Runs one step that takes what comes from rank 1, or of our own only, and passes on to rank 2
  // what it makes of it, which must be `result`; so must what is kept, if the step keeps it.
  void run(PlannedStep step, const Bytes& result, bool past_caches = false, bool takes = true,
           bool sends = true) {
    const std::size_t skip = opening_bytes(kBytes);
    Descriptor opening;
    opening.kind = Collective::kReduceScatter;
    opening.count = kBytes;
    recv.message.resize(skip + kBytes);
    std::memcpy(recv.message.data(), &opening, sizeof opening);
    std::ranges::copy(theirs, recv.message.begin() + static_cast<std::ptrdiff_t>(skip));
    if (takes) step.recv = &recv;
    if (takes) step.recv_from = 1;
    if (sends) step.send = &send;
    if (sends) step.send_to = 2;
    step.extent = input(0);
    step.opens_recv = step.opens_send = true;
    plan.steps = {step};
    plan.sends.clear();
    if (sends) plan.sends = {{&send, 2}};
    RunSpec spec;
    spec.plan = &plan;
    spec.kernels = &row;
    spec.input = mine.data();
    spec.output = room.data() + kAskew;
    spec.slicing = Slicing(Partition::split(kBytes, 1, 1), 65536, 4);
    spec.descriptor = opening;
    spec.past_caches = past_caches;
    send.watched = room.data() + kAskew + kBytes - 1;
    std::ranges::fill(room, std::byte{0});
    EXPECT_EQ(ScheduleRun(spec).advance(), Task::Progress::kDone);
    EXPECT_TRUE(std::ranges::equal(ByteView(room).subspan(kAskew, kBytes),
                                   step.dst ? result : Bytes(kBytes)));
    EXPECT_EQ(room[kAskew - 1], std::byte{0});
    EXPECT_EQ(room[kAskew + kBytes], std::byte{0});
    if (!sends) return;
    EXPECT_EQ(send.commits, 1);
    EXPECT_EQ(send.committed, skip + kBytes);
    EXPECT_TRUE(std::ranges::equal(ByteView(send.slot).subspan(skip), result));
  }
  Bytes sum() const {
    Bytes result(kBytes);
    for (std::size_t i = 0; i < kBytes; ++i) {
      result[i] =
          static_cast<std::byte>(static_cast<unsigned>(mine[i]) + static_cast<unsigned>(theirs[i]));
    }
    return result;
  }

  static constexpr std::size_t kAskew = 5;  // to all vectors

  WrittenSend send;
  FakeRecv recv;
  Plan plan;
  kernels::ReduceKernels row =
      kernels::reduce_kernels(DataType::kUint8, ReduceOp::kSum, kernels::best_isa());
  Bytes mine = pattern(3);
  Bytes theirs = pattern(7);
  Bytes room = Bytes(kBytes + 2 * kAskew);
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

TEST_F(Writes, sums_that_are_kept_past_the_caches_are_made_in_both_places_at_once) {
  for (const bool past_caches : {false, true}) {
    for (const bool changes : {false, true}) {
      send = {};
      send.past_caches = past_caches;
      send.changes_its_mind = changes;
      run({.src = input(0), .dst = output(0), .for_good = true}, sum(), true);
      EXPECT_EQ(send.written, past_caches != changes ? kBytes : kBlock);
    }
  }
}

TEST_F(Writes, what_is_only_kept_is_read_by_the_link_unless_past_the_caches) {
  for (const bool past_caches : {false, true}) {
    recv.bytes_read = 0;
    run({.dst = output(0), .for_good = true}, theirs, past_caches, true, false);
    EXPECT_EQ(recv.bytes_read, past_caches ? 0 : kBytes);
  }
}

TEST_F(Writes, what_is_handed_on_and_kept_is_kept_as_the_link_reads_it) {
  run({.dst = output(0)}, theirs);
  EXPECT_EQ(recv.bytes_read, kBytes);
}

TEST_F(Writes, sums_that_are_only_kept_go_past_the_caches) {
  run({.src = input(0), .dst = output(0), .for_good = true}, sum(), true, true, false);
}

TEST_F(Writes, sums_keep_the_order_of_their_operands_also_past_the_caches) {
  row.reduce = subtract;
  row.fold_streaming = subtract_streaming;
  row.reduce_twice = subtract_twice;
  for (const bool received_first : {false, true}) {
    Bytes difference(kBytes);
    subtract(difference.data(), received_first ? theirs.data() : mine.data(),
             received_first ? mine.data() : theirs.data(), kBytes);
    for (const bool past_caches : {false, true}) {
      for (const bool sends : {false, true}) {
        send = {};
        run({.src = input(0), .dst = output(0), .received_first = received_first, .for_good = true},
            difference, past_caches, true, sends);
      }
    }
  }
}

TEST_F(Writes, what_is_handed_on_and_kept_is_both_even_past_the_caches) {
  for (const bool past_caches : {false, true}) {
    for (const bool for_good : {false, true}) {
      send = {};
      run({.dst = output(0), .for_good = for_good}, theirs, past_caches);
      EXPECT_EQ(send.written, past_caches && for_good ? kBlock : kBytes);
    }
  }
}

// A root's message goes first, but where its own copy is made in the same go.
TEST_F(Writes, what_a_root_sends_and_keeps_is_both) {
  const PlannedStep step{.src = input(0), .dst = output(0), .for_good = true};
  for (const bool past_caches : {false, true}) {
    for (const bool link_goes_past : {false, true}) {
      for (const bool changes : {false, true}) {
        send = {};
        send.past_caches = link_goes_past;
        send.changes_its_mind = changes;
        run(step, mine, past_caches, false);
        const bool in_one_go = past_caches && !link_goes_past;
        EXPECT_EQ(send.watched_at_commit, in_one_go ? mine.back() : std::byte{0});
        EXPECT_EQ(send.written, in_one_go && !changes ? kBlock : kBytes);
      }
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
