// Two rings between two ranks, and the memory that goes to and fro with their messages.
#include "src/base/shuttles.h"

#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <random>
#include <set>
#include <thread>
#include <utility>

#include "src/base/error.h"
#include "tests/base/ring_memory.h"
#include "tests/support/pattern.h"

namespace catenary {
namespace {

constexpr SlotRingShape kShape{4, 4096, 1 << 16};
constexpr std::size_t kLong = kInlineBytes + 1;

struct Pair {
  SlotRingShape shape = kShape;
  RingMemory to_second{shape};
  RingMemory to_first{shape};
};

struct End {
  End(const RingMemory& ours, const RingMemory& theirs, const SlotRingShape& shape = kShape)
      : shuttles(ours.get() + shape.shuttle_offset(), theirs.get() + shape.shuttle_offset(),
                 shape.slot_bytes, shape.shuttle_spacing()),
        producer(ours.get(), shape, 0, shape.belt_bytes, &shuttles),
        consumer(theirs.get(), shape, 0, &shuttles) {}

  // Where the message was laid; null while the ring is full.
  const std::byte* send(std::size_t bytes, std::uint64_t message) {
    const ByteSpan span = producer.try_acquire(bytes);
    if (span.empty()) return nullptr;
    fill(span, message);
    producer.commit(bytes);
    return span.data();
  }
  const std::byte* receive(std::size_t bytes, std::uint64_t message) {
    const ByteView view = consumer.try_peek();
    EXPECT_EQ(view.size(), bytes);
    EXPECT_TRUE(holds(view, message)) << "of message " << message;
    consumer.release();
    return view.data();
  }

  Shuttles shuttles;
  SlotProducer producer;
  SlotConsumer consumer;
};

struct ShuttlesOfTwo : testing::Test {
  Pair pair;
  End first{pair.to_second, pair.to_first};
  End second{pair.to_first, pair.to_second};
};

TEST_F(ShuttlesOfTwo, an_answer_lies_where_the_message_lay) {
  const std::byte* place = first.send(kLong, 0);
  for (std::uint64_t i = 0; i < 100; ++i) {
    End& here = i % 2 == 0 ? second : first;
    EXPECT_EQ(here.receive(kLong, i), place);
    EXPECT_EQ(here.send(kLong, i + 1), place);
  }
}

TEST_F(ShuttlesOfTwo, an_exchange_goes_round_two_places) {
  std::set<const std::byte*> places;
  for (std::uint64_t i = 0; i < 100; ++i) {
    places.insert(first.send(kLong, i));
    places.insert(second.send(kLong, i));
    first.receive(kLong, i);
    second.receive(kLong, i);
  }
  EXPECT_EQ(places.size(), 2u);
}

TEST_F(ShuttlesOfTwo, who_is_not_answered_lays_its_messages_elsewhere) {
  std::set<const std::byte*> places;
  for (std::uint64_t i = 0; i < 100; ++i) {
    const std::byte* place = first.send(kLong, i);
    EXPECT_EQ(second.receive(kLong, i), place);
    places.insert(place);
  }
  EXPECT_GT(places.size(), Shuttles::kOfEach);
  EXPECT_FALSE(first.shuttles.at_hand());
  // All of them are the other's now, who keeps what it cannot use.
  for (std::uint64_t i = 0; i < 3; ++i) second.send(kLong, i);
  for (std::uint64_t i = 0; i < 3; ++i) first.receive(kLong, i);
  EXPECT_TRUE(first.shuttles.at_hand());
  EXPECT_TRUE(second.shuttles.at_hand());
}

TEST_F(ShuttlesOfTwo, what_is_short_after_all_keeps_its_shuttle) {
  const auto before = first.shuttles.at_hand();
  fill(first.producer.try_acquire(kLong), 7);
  EXPECT_TRUE(first.producer.is_at_hand());
  first.producer.commit(9);
  EXPECT_FALSE(first.producer.is_at_hand());
  second.receive(9, 7);
  EXPECT_EQ(first.shuttles.at_hand(), before);
}

TEST_F(ShuttlesOfTwo, what_was_acquired_stays_although_another_comes) {
  second.send(kLong, 1);
  const ByteSpan span = first.producer.try_acquire(kLong);
  first.receive(kLong, 1);
  EXPECT_EQ(first.producer.try_acquire(kLong).data(), span.data());
  EXPECT_NE(first.producer.try_acquire(kLong + 1).data(), span.data());
}

// What is acquired, held, answered and released when can be anything.
TEST_F(ShuttlesOfTwo, messages_stay_as_they_are_until_they_are_released) {
  std::mt19937_64 random(5);
  std::array<End*, 2> ends = {&first, &second};
  std::array<std::deque<std::pair<std::uint64_t, std::size_t>>, 2> under_way;
  int at_hand = 0;
  for (std::uint64_t i = 0; i < 50'000; ++i) {
    const std::size_t from = random() % 2;
    End& end = *ends[from];
    std::size_t bytes = 1 + random() % kShape.slot_bytes;
    const ByteSpan span = end.producer.try_acquire(bytes);
    if (!span.empty()) fill(span, i);
    while (!under_way[1 - from].empty() && random() % 3 != 0) {
      const auto [message, length] = under_way[1 - from].front();
      end.receive(length, message);
      under_way[1 - from].pop_front();
    }
    if (span.empty()) {
      ASSERT_EQ(under_way[from].size(), kShape.slots) << "a free slot was refused";
      continue;
    }
    ASSERT_EQ(end.producer.try_acquire(bytes).data(), span.data()) << "what was acquired moved";
    at_hand += end.producer.is_at_hand() ? 1 : 0;
    if (random() % 4 == 0) bytes = 1 + random() % bytes;
    end.producer.commit(bytes);
    under_way[from].emplace_back(i, bytes);
  }
  EXPECT_GT(at_hand, 1000);
}

enum Place { kHead, kHome, kShuttle, kBelt };

Place kind_of(const std::byte* place, const RingMemory& ring, const SlotRingShape& shape) {
  const std::uintptr_t begin = reinterpret_cast<std::uintptr_t>(ring.get());
  const std::uintptr_t offset = reinterpret_cast<std::uintptr_t>(place) - begin;
  if (offset < shape.data_offset()) return kHead;
  if (offset < shape.shuttle_offset()) return kHome;
  return offset < shape.belt_offset() || offset >= shape.bytes() ? kShuttle : kBelt;
}

// Of a link whose slots hold more than its belt: messages lie in heads, on shuttles, on the belt
// and in homes, in any order, and many are held while others are laid.
TEST(Shuttles, beside_a_full_belt_messages_stay_as_they_are) {
  const Pair pair{.shape = {64, 4096, SlotBelt::kFirstBytes}};
  End first(pair.to_second, pair.to_first, pair.shape);
  End second(pair.to_first, pair.to_second, pair.shape);
  std::mt19937_64 random(11);
  std::deque<std::size_t> under_way;
  std::uint64_t taken = 0;
  std::uint64_t answers = 0;
  std::array<int, 4> seen = {};
  std::size_t most_held = pair.shape.slots;
  for (std::uint64_t i = 0; i < 100'000; ++i) {
    const std::size_t bytes = random() % 8 == 0 ? 1 + random() % 4096 : 1600 + random() % 400;
    while (under_way.size() >= most_held) {
      second.receive(under_way.front(), taken++);
      under_way.pop_front();
      if (random() % 4 != 0) continue;
      second.send(kLong, answers);
      first.receive(kLong, answers++);
    }
    if (random() % 50 == 0) most_held = 1 + random() % pair.shape.slots;
    const std::byte* place = first.send(bytes, i);
    ASSERT_NE(place, nullptr);
    under_way.push_back(bytes);
    ++seen[kind_of(place, pair.to_second, pair.shape)];
  }
  for (const Place kind : {kHead, kHome, kShuttle, kBelt}) EXPECT_GT(seen[kind], 1000) << kind;
}

// Who still reads a message may send meanwhile, but not on what it reads.
TEST_F(ShuttlesOfTwo, what_is_being_read_is_not_written) {
  std::mt19937_64 random(7);
  std::uint64_t sent = 0;
  std::uint64_t answered = 0;
  for (std::uint64_t i = 0; i < 10'000; ++i) {
    const std::size_t bytes = kLong + random() % (kShape.slot_bytes - kLong);
    ASSERT_NE(first.send(bytes, sent++), nullptr);
    const ByteView view = second.consumer.try_peek();
    ASSERT_EQ(view.size(), bytes);
    const std::uint64_t until = answered + random() % (kShape.slots + 1);
    for (std::uint64_t answer = answered; answer < until; ++answer) {
      ASSERT_NE(second.send(kLong, ~answer), nullptr);
      ASSERT_TRUE(holds(view, i)) << "an answer lies on message " << i;
    }
    second.consumer.release();
    for (; answered < until; ++answered) first.receive(kLong, ~answered);
  }
}

using MaySend = bool (*)(std::uint64_t sent, std::uint64_t taken);

void exchange_between_threads(MaySend first_may, MaySend second_may) {
  const Pair pair;
  constexpr std::uint64_t kMessages = 20'000;
  const auto bytes_of = [](std::uint64_t message) { return 1 + message * 37 % kShape.slot_bytes; };
  const auto run = [&](End& end, MaySend may_send) {
    std::uint64_t sent = 0;
    std::uint64_t taken = 0;
    while (sent < kMessages || taken < kMessages) {
      const bool may = sent < kMessages && may_send(sent, taken);
      bool moved = may && end.send(bytes_of(sent), sent) != nullptr;
      sent += moved ? 1 : 0;
      if (!end.consumer.try_peek().empty()) {
        end.receive(bytes_of(taken), taken);
        ++taken;
        moved = true;
      }
      if (!moved) std::this_thread::yield();
    }
  };
  std::thread other([&] {
    End end(pair.to_first, pair.to_second);
    run(end, second_may);
  });
  End end(pair.to_second, pair.to_first);
  run(end, first_may);
  other.join();
}

TEST(Shuttles, two_threads_exchange_every_message) {
  const MaySend closely = [](std::uint64_t sent, std::uint64_t taken) { return sent < taken + 3; };
  exchange_between_threads(closely, closely);
}

// So that shuttles gather at one end, and the other has none.
TEST(Shuttles, one_thread_answers_many_messages_at_once) {
  constexpr std::uint64_t kAtOnce = 2 * Shuttles::kAll;
  exchange_between_threads(
      [](std::uint64_t sent, std::uint64_t taken) { return sent < taken + 2 * kAtOnce; },
      [](std::uint64_t sent, std::uint64_t taken) { return sent < taken / kAtOnce * kAtOnce; });
}

void expect_refused(End& end, std::uint64_t shuttle) {
  try {
    end.consumer.try_peek();
    FAIL() << "shuttle " << shuttle << " was taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kRemote) << shuttle;
  }
}

TEST_F(ShuttlesOfTwo, what_a_peer_does_not_have_it_cannot_send) {
  const auto place_of = [&](std::uint32_t slot) -> std::atomic<std::uint64_t>& {
    std::byte* const head = pair.to_second.get() + kShape.head_offset(slot);
    return reinterpret_cast<SlotHead*>(head)->place();
  };
  first.send(kLong, 0);
  for (const std::uint64_t wrong :
       {std::uint64_t{Shuttles::kOfEach}, std::uint64_t{Shuttles::kAll} - 1,
        std::uint64_t{Shuttles::kAll}, std::uint64_t{1} << 32, SlotHead::kPastCaches}) {
    place_of(0).store(SlotHead::kOnShuttle + wrong);
    expect_refused(second, wrong);
  }
  place_of(0).store(SlotHead::kOnShuttle);
  EXPECT_EQ(second.consumer.try_peek().size(), kLong);
  // Nor what it has handed over already.
  second.consumer.release();
  first.send(kLong, 1);
  place_of(1).store(SlotHead::kOnShuttle);
  expect_refused(second, 0);
}

TEST(Shuttles, are_refused_where_there_are_none) {
  const Pair pair;
  End first(pair.to_second, pair.to_first);
  SlotConsumer second(pair.to_second.get(), kShape);
  first.send(kLong, 0);
  EXPECT_THROW(second.try_peek(), Error);
}

}  // namespace
}  // namespace catenary
