#include "src/base/slot_ring.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <random>
#include <thread>
#include <vector>

#include "src/base/doorbell.h"
#include "tests/base/ring_memory.h"
#include "tests/support/pattern.h"

namespace catenary {
namespace {

std::vector<std::size_t> edge_sizes(std::size_t slot_bytes) {
  std::vector<std::size_t> sizes = {1,
                                    7,
                                    8,
                                    55,
                                    56,
                                    57,
                                    64,
                                    kInlineBytes - 1,
                                    kInlineBytes,
                                    kInlineBytes + 1,
                                    1535,
                                    1536,
                                    2000,
                                    3000,
                                    slot_bytes - 1,
                                    slot_bytes};
  std::erase_if(sizes, [&](std::size_t bytes) { return bytes > slot_bytes; });
  return sizes;
}

bool send(SlotProducer& producer, std::size_t bytes, std::uint64_t message) {
  const ByteSpan span = producer.try_acquire(bytes);
  if (span.empty()) return false;
  fill(span, message);
  producer.commit(bytes);
  return true;
}

// Sends `messages` of mixed sizes from one thread to another and checks every byte.
void stream(std::byte* memory, const SlotRingShape& shape, std::uint32_t messages,
            std::uint32_t messages_before) {
  const std::vector<std::size_t> sizes = edge_sizes(shape.slot_bytes);
  std::thread sender([&] {
    SlotProducer producer(memory, shape, messages_before);
    for (std::uint32_t i = 0; i < messages;) {
      if (send(producer, sizes[i % sizes.size()], i)) {
        ++i;
      } else {
        std::this_thread::yield();
      }
    }
  });
  SlotConsumer consumer(memory, shape, messages_before);
  std::uint32_t wrong = 0;
  for (std::uint32_t i = 0; i < messages;) {
    const ByteView view = consumer.try_peek();
    if (view.empty()) {
      std::this_thread::yield();
      continue;
    }
    if (view.size() != sizes[i % sizes.size()] || !holds(view, i)) ++wrong;
    consumer.release();
    ++i;
  }
  sender.join();
  EXPECT_EQ(wrong, 0u);
  EXPECT_TRUE(consumer.try_peek().empty());
}

TEST(SlotRing, heads_and_homes_lie_where_the_drawing_says) {
  constexpr SlotRingShape kLarge{16, 65536};
  EXPECT_EQ(kLarge.head_offset(1), 1408u);
  EXPECT_EQ(kLarge.data_offset(), 20480u);
  EXPECT_EQ(kLarge.data_offset(1), 20480u + 65536u);
  EXPECT_EQ(kLarge.shuttle_offset(), 20480u + 16u * 65536u);
  EXPECT_EQ(kLarge.bytes(), 20480u + 16u * 65536u + 8u * (65536u + 4096u));
  constexpr SlotRingShape kSmall{2, 64};
  EXPECT_EQ(kSmall.data_offset(), 256u + 2u * 1152u);
  EXPECT_EQ(kSmall.bytes(), 4096u + 8u * 4096u);
}

TEST(SlotRing, zeroed_memory_is_an_empty_ring) {
  constexpr SlotRingShape kShape{2, 64};
  const RingMemory memory(kShape);
  EXPECT_TRUE(SlotConsumer(memory.get(), kShape).try_peek().empty());
  EXPECT_EQ(SlotProducer(memory.get(), kShape).try_acquire(64).size(), 64u);
}

TEST(SlotRing, is_full_after_as_many_messages_as_slots) {
  constexpr SlotRingShape kShape{3, 2048};
  const RingMemory memory(kShape);
  SlotProducer producer(memory.get(), kShape);
  SlotConsumer consumer(memory.get(), kShape);
  for (std::uint64_t i = 0; i < 3; ++i) EXPECT_TRUE(send(producer, kInlineBytes + 1, i));
  EXPECT_TRUE(producer.try_acquire(1).empty());
  EXPECT_TRUE(holds(consumer.try_peek(), 0));
  EXPECT_TRUE(producer.try_acquire(1).empty()) << "peeking gave a slot back";
  consumer.release();
  EXPECT_TRUE(send(producer, kInlineBytes + 1, 3));
  EXPECT_TRUE(producer.try_acquire(1).empty());
}

TEST(SlotRing, acquiring_or_peeking_again_gives_the_same_slot) {
  constexpr SlotRingShape kShape{2, 2048};
  for (const std::size_t bytes : {kInlineBytes, kInlineBytes + 1}) {
    const RingMemory memory(kShape);
    SlotProducer producer(memory.get(), kShape);
    SlotConsumer consumer(memory.get(), kShape);
    const ByteSpan span = producer.try_acquire(bytes);
    EXPECT_EQ(producer.try_acquire(bytes).data(), span.data());
    fill(span, 5);
    producer.commit(bytes);
    EXPECT_EQ(consumer.try_peek().data(), consumer.try_peek().data());
    EXPECT_TRUE(holds(consumer.try_peek(), 5));
  }
}

TEST(SlotRing, a_message_may_be_shorter_than_what_was_acquired) {
  constexpr SlotRingShape kShape{2, 2048};
  for (const std::size_t bytes : {std::size_t{1}, kInlineBytes, kInlineBytes + 1}) {
    const RingMemory memory(kShape);
    SlotProducer producer(memory.get(), kShape);
    SlotConsumer consumer(memory.get(), kShape);
    fill(producer.try_acquire(2048), bytes);
    producer.commit(bytes);
    EXPECT_EQ(consumer.try_peek().size(), bytes);
    EXPECT_TRUE(holds(consumer.try_peek(), bytes));
  }
}

TEST(SlotRing, spans_stay_as_they_are_while_the_other_slots_turn) {
  constexpr SlotRingShape kShape{2, 2048};
  for (const std::size_t bytes : {kInlineBytes, kInlineBytes + 1}) {
    const RingMemory memory(kShape);
    SlotProducer producer(memory.get(), kShape);
    SlotConsumer consumer(memory.get(), kShape);
    EXPECT_TRUE(send(producer, bytes, 1));
    const ByteView held = consumer.try_peek();
    EXPECT_TRUE(send(producer, bytes, 2));
    EXPECT_FALSE(send(producer, bytes, 3));
    EXPECT_TRUE(holds(held, 1));
  }
}

TEST(SlotRing, two_threads_pass_every_size_in_order) {
  for (const SlotRingShape shape : {SlotRingShape{2, 64},
                                    {2, 2048},
                                    {3, 4096},
                                    {16, 8192},
                                    {3, 4096, 8192},
                                    {16, 8192, 1 << 18}}) {
    const RingMemory memory(shape);
    stream(memory.get(), shape, 4000, 0);
  }
}

// By one thread, so that what is held and when it is seen to be released can be anything: what was
// acquired stays where it is until it is committed, and no message is laid over one still held.
TEST(SlotRing, messages_on_a_grown_belt_stay_as_they_are) {
  std::mt19937_64 random(11);
  for (const SlotRingShape shape : {SlotRingShape{2, 16384, 65536}, {16, 4096, 1 << 18}}) {
    const RingMemory memory(shape);
    SlotProducer producer(memory.get(), shape);
    SlotConsumer consumer(memory.get(), shape);
    std::deque<std::pair<std::uint64_t, std::size_t>> held;
    int on_belt = 0;
    for (std::uint64_t i = 0; i < 20'000; ++i) {
      std::size_t bytes = 1 + random() % shape.slot_bytes;
      const ByteSpan span = producer.try_acquire(bytes);
      if (span.empty()) {
        ASSERT_EQ(held.size(), shape.slots) << "a free slot was refused";
      } else {
        on_belt += span.data() >= memory.get() + shape.belt_offset() ? 1 : 0;
        fill(span, i);
      }
      while (!held.empty() && random() % 3 == 0) {
        const ByteView view = consumer.try_peek();
        ASSERT_EQ(view.size(), held.front().second);
        ASSERT_TRUE(holds(view, held.front().first)) << "of message " << held.front().first;
        consumer.release();
        held.pop_front();
        if (random() % 2 == 0) producer.drained();
      }
      if (span.empty()) continue;
      ASSERT_EQ(producer.try_acquire(bytes).data(), span.data()) << "what was acquired moved";
      if (random() % 4 == 0) bytes = 1 + random() % bytes;
      producer.commit(bytes);
      held.emplace_back(i, bytes);
    }
    EXPECT_GT(on_belt, 1000);
  }
}

// What comes from the producer's caches is read in another way than what went past them.
TEST(SlotRing, its_reader_is_told_how_the_belt_was_written) {
  constexpr SlotRingShape kShape{8, 4096, 1 << 17};
  const RingMemory memory(kShape);
  SlotProducer producer(memory.get(), kShape);
  SlotConsumer consumer(memory.get(), kShape);
  int on_belt = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const bool past_caches = i % 3 == 0;
    fill(producer.try_acquire(4096), i);
    producer.commit(4096, past_caches);
    const ByteView view = consumer.try_peek();
    ASSERT_TRUE(holds(view, i)) << "of message " << i;
    const bool is_on_belt = view.data() >= memory.get() + kShape.belt_offset();
    ASSERT_EQ(consumer.is_on_warm_belt(view.data()), is_on_belt && !past_caches) << i;
    std::byte elsewhere{};
    ASSERT_FALSE(consumer.is_on_warm_belt(&elsewhere));
    consumer.release();
    on_belt += is_on_belt ? 1 : 0;
  }
  EXPECT_GT(on_belt, 500);
}

TEST(SlotRing, a_million_messages_pass) {
  constexpr SlotRingShape kShape{7, 2048};
  const RingMemory memory(kShape);
  stream(memory.get(), kShape, 1u << 20, 0);
}

TEST(SlotRing, sequence_numbers_wrap) {
  for (const std::uint32_t slots : {2u, 3u, 16u}) {
    const SlotRingShape shape{slots, 2048};
    const RingMemory memory(shape);
    const std::uint32_t before = 0u - 100u;
    memory.begin_after(before);
    // The slot of the first message must be the same on both sides of the wrap, which holds for
    // any count of slots, because each side counts slots and messages apart.
    stream(memory.get(), shape, 1000, before);
  }
}

// Tries until it is done once, and sleeps between without a limit: a lost ring hangs the test.
template <typename Try>
void sleep_until_done(Doorbell& bell, const Try& try_it) {
  for (bool done = false; !done;) {
    const Doorbell::Ticket ticket{&bell, bell.announce()};
    done = try_it();
    if (!done) Doorbell::wait_any({&ticket, 1}, -1);
    bell.retract();
  }
}

TEST(SlotRing, sides_that_sleep_for_each_other_are_always_woken) {
  constexpr std::uint64_t kMessages = 200'000;
  for (const std::uint32_t slots : {2u, 3u}) {
    const SlotRingShape shape{slots, 64};
    const RingMemory memory(shape);
    DoorbellWords words[2];
    Doorbell for_room(words[0], false);
    Doorbell for_messages(words[1], false);
    std::thread sending([&] {
      SlotProducer producer(memory.get(), shape);
      for (std::uint64_t i = 0; i < kMessages; ++i) {
        sleep_until_done(for_room, [&] { return send(producer, 8, i); });
        for_messages.ring();
      }
    });
    SlotConsumer consumer(memory.get(), shape);
    std::uint64_t wrong = 0;
    for (std::uint64_t i = 0; i < kMessages; ++i) {
      sleep_until_done(for_messages, [&] { return !consumer.try_peek().empty(); });
      if (!holds(consumer.try_peek(), i)) ++wrong;
      consumer.release();
      for_room.ring();
    }
    sending.join();
    EXPECT_EQ(wrong, 0u);
  }
}

TEST(SlotRing, who_withdraws_sees_who_writes_or_is_seen) {
  const SlotRingShape shape{2, 1024};
  const RingMemory memory(shape);
  SlotProducer producer(memory.get(), shape);
  SlotConsumer consumer(memory.get(), shape);
  EXPECT_EQ(producer.writer(), 0u);
  EXPECT_TRUE(consumer.try_begin_writing(42));
  EXPECT_EQ(producer.writer(), 42u);
  consumer.end_writing();
  EXPECT_EQ(producer.writer(), 0u);
  EXPECT_TRUE(consumer.try_begin_writing(42));
  producer.withdraw();
  EXPECT_EQ(producer.writer(), 42u) << "it may write on until it has looked again";
  consumer.end_writing();
  EXPECT_FALSE(consumer.try_begin_writing(42));
  EXPECT_EQ(producer.writer(), 0u);
}

// In every round one side writes a number as long as it may, and the other one takes the place
// back.
TEST(SlotRing, nothing_is_written_to_what_was_taken_back) {
  const SlotRingShape shape{2, 1024};
  for (int round = 0; round < 300; ++round) {
    const RingMemory memory(shape);
    SlotProducer producer(memory.get(), shape);
    SlotConsumer consumer(memory.get(), shape);
    int place = 0;  // plain: a race would be told by the sanitizer
    std::thread writer([&] {
      while (consumer.try_begin_writing(1)) {
        ++place;
        consumer.end_writing();
      }
    });
    for (int pause = 0; pause < round * 10; ++pause)
      std::atomic_signal_fence(std::memory_order_seq_cst);
    producer.withdraw();
    while (producer.writer() != 0) std::this_thread::yield();
    const int last = place;
    place = -1;
    writer.join();
    EXPECT_EQ(place, -1) << "after " << last;
  }
}

TEST(SlotRing, what_an_older_round_left_is_not_taken_for_new) {
  constexpr SlotRingShape kShape{2, 64};
  const RingMemory memory(kShape);
  SlotProducer producer(memory.get(), kShape);
  SlotConsumer consumer(memory.get(), kShape);
  for (std::uint64_t i = 0; i < 5; ++i) {
    EXPECT_TRUE(consumer.try_peek().empty());
    EXPECT_TRUE(send(producer, 8, i));
    EXPECT_TRUE(holds(consumer.try_peek(), i));
    consumer.release();
  }
}

TEST(SlotRing, a_length_beyond_the_slot_is_the_peers_fault) {
  constexpr SlotRingShape kShape{2, 64};
  for (const std::uint32_t bytes : {0u, 65u, 0xffffffffu}) {
    const RingMemory memory(kShape);
    auto& head = *reinterpret_cast<SlotHead*>(memory.get() + kShape.head_offset(0));
    head.bytes.store(bytes);
    head.sequence.store(1);
    SlotConsumer consumer(memory.get(), kShape);
    try {
      consumer.try_peek();
      ADD_FAILURE() << "accepted a message of " << bytes << " bytes";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kRemote);
    }
  }
}

TEST(SlotRing, a_place_outside_of_the_ring_is_the_peers_fault) {
  constexpr SlotRingShape kShape{2, 2048, 4096};
  for (const std::uint64_t place :
       {std::uint64_t{0}, std::uint64_t{kShape.data_offset() - 1},
        std::uint64_t{kShape.bytes() - 2047}, SlotHead::kPastCaches,
        SlotHead::kPastCaches | kShape.bytes(), ~std::uint64_t{0}, ~std::uint64_t{2047}}) {
    const RingMemory memory(kShape);
    auto& head = *reinterpret_cast<SlotHead*>(memory.get() + kShape.head_offset(0));
    head.bytes.store(2048);
    head.place().store(place);
    head.sequence.store(1);
    SlotConsumer consumer(memory.get(), kShape);
    try {
      consumer.try_peek();
      ADD_FAILURE() << "accepted a message at " << place;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kRemote);
    }
  }
}

TEST(SlotRing, releasing_what_was_never_sent_is_the_peers_fault) {
  constexpr SlotRingShape kShape{2, 64};
  const RingMemory memory(kShape);
  SlotProducer producer(memory.get(), kShape);
  EXPECT_TRUE(send(producer, 8, 0));
  EXPECT_TRUE(send(producer, 8, 1));
  memory.begin_after(7);
  try {
    producer.try_acquire(8);
    ADD_FAILURE() << "believed a peer that released 7 of 2 messages";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kRemote);
    EXPECT_NE(std::string(error.what()).find("released 5 messages more"), std::string::npos);
  }
}

}  // namespace
}  // namespace catenary
