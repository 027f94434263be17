// What communicators do at once, seen from their links: quiet commits and releases, each followed
// by a ring; and what becomes of what cannot be done so.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "src/base/error.h"
#include "src/comm/communicator.h"
#include "src/device/device.h"
#include "src/device/memory.h"
#include "src/transport/forwarding_links.h"
#include "transports/loopback/transport.h"

namespace catenary {
namespace {

// Of all links of a rank: what they have seen, also while the device's own thread drives.
struct Seen {
  std::atomic<int> quiet{0};  // commits and releases
  std::atomic<int> loud{0};
  std::atomic<int> rung{0};        // after quiet ones
  std::atomic<bool> fails{false};  // from now on looking for a message throws
  std::atomic<bool> has_thrown{false};
  void forget() { quiet = loud = rung = 0; }
};
struct Counts {
  explicit Counts(const Seen& seen) : quiet(seen.quiet), loud(seen.loud), rung(seen.rung) {}
  int quiet;
  int loud;
  int rung;
};

class WatchedSend final : public ForwardingSendLink {
 public:
  WatchedSend(std::unique_ptr<SendLink> inside, Seen& seen)
      : ForwardingSendLink(std::move(inside)), seen_(seen) {}
  void commit(std::size_t bytes) override { ++seen_.loud, inside().commit(bytes); }
  void commit_quietly(std::size_t bytes) override {
    ++seen_.quiet;
    inside().commit_quietly(bytes);
  }
  void ring_after_fence() noexcept override { ++seen_.rung, inside().ring_after_fence(); }

 private:
  Seen& seen_;
};

class WatchedRecv final : public ForwardingRecvLink {
 public:
  WatchedRecv(std::unique_ptr<RecvLink> inside, Seen& seen)
      : ForwardingRecvLink(std::move(inside)), seen_(seen) {}
  ByteView try_peek() override {
    if (seen_.fails && seen_.has_thrown.exchange(true)) ADD_FAILURE() << "it was used again";
    if (seen_.fails) throw_error(ErrorCode::kRemote, "the line is dead");
    return inside().try_peek();
  }
  void release() override { ++seen_.loud, inside().release(); }
  void release_quietly() override { ++seen_.quiet, inside().release_quietly(); }
  void ring_after_fence() noexcept override {
    EXPECT_FALSE(seen_.has_thrown) << "it was used again";
    ++seen_.rung;
    inside().ring_after_fence();
  }

 private:
  Seen& seen_;
};

class WatchedTransport final : public Transport {
 public:
  WatchedTransport(std::unique_ptr<Transport> inside, Seen& seen, bool is_rung)
      : inside_(std::move(inside)), seen_(seen), is_rung_(is_rung) {}
  std::string_view name() const override { return inside_->name(); }
  Bytes address() override { return inside_->address(); }
  bool reaches(ByteView peer) const override { return inside_->reaches(peer); }
  std::vector<bool> attach(std::span<const Bytes> addresses, const Wait& wait) override {
    return inside_->attach(addresses, wait);
  }
  std::unique_ptr<SendLink> connect(const LinkSpec& spec) override {
    return std::make_unique<WatchedSend>(inside_->connect(spec), seen_);
  }
  std::unique_ptr<RecvLink> listen(const LinkSpec& spec) override {
    return std::make_unique<WatchedRecv>(inside_->listen(spec), seen_);
  }
  bool has_come(const LinkSpec& spec) override { return inside_->has_come(spec); }
  bool shares_memory() const override { return inside_->shares_memory(); }
  Doorbell* doorbell() override { return is_rung_ ? inside_->doorbell() : nullptr; }

 private:
  std::unique_ptr<Transport> inside_;
  Seen& seen_;
  const bool is_rung_;
};

// Two ranks that one thread drives, so that it is known who comes first.
struct OperationsAtOnce : testing::Test {
  explicit OperationsAtOnce(bool are_rung = true) {
    config.socket_ifname = "=lo";
    const UniqueId id = create_unique_id(config);
    std::vector<std::thread> threads;
    for (std::size_t rank = 0; rank < 2; ++rank) {
      threads.emplace_back([&, rank] {
        const auto at = static_cast<int>(rank);
        ranks[rank] = Communicator::make(at, 2, Device::get(at), CommunicatorOptions{}, config);
        ranks[rank]->join(id, [&](const TransportContext& context) {
          Transports all;
          all.push_back(std::make_unique<WatchedTransport>(loopback::make_transport(context),
                                                           seen[rank], are_rung));
          return all;
        });
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  ~OperationsAtOnce() override {
    synchronize();
    for (const auto& rank : ranks) rank->abort();
  }

  Stream& stream(std::size_t rank) { return ranks[rank]->device().default_stream(); }
  void submit(std::size_t rank, Collective kind, std::size_t count = 8,
              const std::byte* input = nullptr) {
    const OperationRequest request{
        .kind = kind,
        .input = input != nullptr ? input : given[rank].data(),
        .output = got[rank].data(),
        .count = count,
        .reduction = {.name = reduces(kind) ? Reduction::kSum : Reduction::kNone},
        .mark = ranks[rank]->mark(),
        .stream = &stream(rank)};
    ranks[rank]->submit({.operations = {&request, 1}, .messages = {}});
  }
  void submit_message(std::size_t rank, bool sends, std::size_t count = 8) {
    const MessageRequest message{.buffer = sends ? given[rank].data() : got[rank].data(),
                                 .count = count,
                                 .stream = &stream(rank),
                                 .peer = static_cast<int>(1 - rank),
                                 .sends = sends};
    ranks[rank]->submit({.operations = {}, .messages = {&message, 1}});
  }
  void submit_exchange(std::size_t rank, bool send_first = true, std::size_t received = 8) {
    std::array<MessageRequest, 2> both;
    for (MessageRequest& each : both) {
      each.sends = (&each == &both[0]) == send_first;
      each.buffer = each.sends ? given[rank].data() : got[rank].data();
      each.count = each.sends ? 8 : received;
      each.stream = &stream(rank);
      each.peer = static_cast<int>(1 - rank);
    }
    ranks[rank]->submit({.operations = {}, .messages = both});
  }
  void synchronize_one(std::size_t rank) { stream(rank).synchronize(); }
  void synchronize() {
    for (std::size_t rank = 0; rank < 2; ++rank) stream(rank).synchronize();
  }
  // Once links are made and known, what `operation` makes of them.
  std::array<Counts, 2> seen_in(const std::function<void()>& operation) {
    operation();
    synchronize();
    for (Seen& each : seen) each.forget();
    operation();
    return {Counts(seen[0]), Counts(seen[1])};
  }
  static void expect_all_quiet(const Counts& of, int messages) {
    EXPECT_EQ(of.quiet, messages);
    EXPECT_EQ(of.loud, 0);
    EXPECT_GE(of.rung, messages);
  }

  Config config;
  std::array<Seen, 2> seen;
  std::array<std::shared_ptr<Communicator>, 2> ranks;
  std::array<Bytes, 2> given{Bytes(20'000, std::byte{1}), Bytes(20'000, std::byte{2})};
  std::array<Bytes, 2> got{Bytes(20'000), Bytes(20'000)};
};

TEST_F(OperationsAtOnce, are_over_when_the_call_returns) {
  const auto broadcast = seen_in([&] {
    submit(0, Collective::kBroadcast);
    submit(1, Collective::kBroadcast);
  });
  expect_all_quiet(broadcast[0], 1);
  expect_all_quiet(broadcast[1], 1);
  EXPECT_TRUE(stream(0).idle() && stream(1).idle());
  EXPECT_EQ(got[1][7], std::byte{1});
  EXPECT_EQ(got[1][8], std::byte{0});

  const auto reduce = seen_in([&] {
    submit(1, Collective::kReduce);
    submit(0, Collective::kReduce);
  });
  expect_all_quiet(reduce[0], 1);
  expect_all_quiet(reduce[1], 1);
  EXPECT_TRUE(stream(0).idle() && stream(1).idle());
  EXPECT_EQ(got[0][7], std::byte{3});
}

TEST_F(OperationsAtOnce, are_sends_and_receives_too) {
  const auto message = seen_in([&] {
    submit_message(0, true);
    submit_message(1, false);
  });
  expect_all_quiet(message[0], 1);
  expect_all_quiet(message[1], 1);
  EXPECT_TRUE(stream(0).idle() && stream(1).idle());
  EXPECT_EQ(got[1][7], std::byte{1});
}

// What is as long as that is lent, if it can be.
TEST_F(OperationsAtOnce, copy_eight_kilobytes_that_nobody_can_map) {
  constexpr std::size_t kBytes = 8192;
  const auto copied = seen_in([&] {
    submit(0, Collective::kBroadcast, kBytes);
    submit(1, Collective::kBroadcast, kBytes);
    submit_message(0, true, kBytes);
    submit_message(1, false, kBytes);
  });
  expect_all_quiet(copied[0], 2);
  expect_all_quiet(copied[1], 2);

  std::byte* const mapped = Memory::process().allocate(kBytes, MemoryKind::kDevice, 0);
  std::fill_n(mapped, kBytes, std::byte{7});
  const auto lent = seen_in([&] {
    submit(0, Collective::kBroadcast, kBytes, mapped);
    submit(1, Collective::kBroadcast, kBytes);
  });
  EXPECT_EQ(lent[0].quiet, 0);
  EXPECT_EQ(lent[1].quiet, 0);
  EXPECT_EQ(got[1][kBytes - 1], std::byte{7});
  synchronize();
  Memory::process().free(mapped, MemoryKind::kDevice);
}

// Who finds nothing wakes nobody.
TEST_F(OperationsAtOnce, ring_for_what_they_have_done) {
  const auto message = seen_in([&] {
    submit_message(1, false);
    EXPECT_EQ(seen[1].rung, 0);
    submit_message(0, true);
    EXPECT_EQ(seen[0].rung, seen[0].quiet);
  });
  EXPECT_EQ(message[1].rung, 0);
}

// Who comes first sends at once and waits; who comes second finds all there.
TEST_F(OperationsAtOnce, begin_although_they_must_wait) {
  const auto exchange = seen_in([&] {
    submit(0, Collective::kAllReduce);
    EXPECT_FALSE(stream(0).idle());
    submit(1, Collective::kAllReduce);
    EXPECT_TRUE(stream(1).idle());
  });
  EXPECT_EQ(exchange[0].quiet, 1);
  expect_all_quiet(exchange[1], 2);
  synchronize();
  expect_all_quiet(Counts(seen[0]), 2);
  EXPECT_EQ(got[0][7], std::byte{3});
  EXPECT_EQ(got[1][7], std::byte{3});
}

// In whatever order the group has them.
TEST_F(OperationsAtOnce, are_groups_of_a_send_and_a_receive_too) {
  for (const bool send_first : {true, false}) {
    got = {Bytes(20'000), Bytes(20'000)};
    const auto exchange = seen_in([&] {
      submit_exchange(0, send_first);
      EXPECT_FALSE(stream(0).idle());
      submit_exchange(1, send_first);
      EXPECT_TRUE(stream(1).idle());
    });
    EXPECT_EQ(exchange[0].quiet, 1);
    EXPECT_GE(exchange[0].rung, 1);
    expect_all_quiet(exchange[1], 2);
    synchronize();
    EXPECT_EQ(seen[0].quiet, 1) << "it was sent again";
    EXPECT_EQ(seen[0].loud, 1) << "it was sent again, or nothing was taken";
    EXPECT_EQ(got[0][7], std::byte{2});
    EXPECT_EQ(got[1][7], std::byte{1});
  }
}

// As many as a link holds are sent ahead; the next one has to wait with both.
TEST_F(OperationsAtOnce, wait_for_room_in_groups_too) {
  submit_exchange(0);
  submit_exchange(1);
  synchronize();
  const int more = static_cast<int>(config.slots) + 3;
  for (int i = 0; i < more; ++i) submit_message(0, true);
  submit_exchange(0);
  for (int i = 0; i < more; ++i) submit_message(1, false);
  given[0][7] = std::byte{9};
  submit_exchange(1);
  synchronize();
  EXPECT_EQ(got[0][7], std::byte{2});
  EXPECT_EQ(got[1][7], std::byte{9}) << "the group has overtaken what was before it";
  EXPECT_FALSE(ranks[0]->failure() || ranks[1]->failure());
}

// What is left of them is given up for a run by the slow look, and is there again for the next.
TEST_F(OperationsAtOnce, may_wait_for_long) {
  for (int round = 0; round < 4; ++round) {
    const auto value = static_cast<std::byte>(round + 10);
    given[0].assign(given[0].size(), value);
    round % 2 == 0 ? submit(1, Collective::kBroadcast) : submit_message(1, false);
    std::thread waiting([&] { stream(1).synchronize(); });
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    EXPECT_FALSE(stream(1).idle());
    round % 2 == 0 ? submit(0, Collective::kBroadcast) : submit_message(0, true);
    waiting.join();
    EXPECT_EQ(got[1][7], value);
    synchronize();
    submit_exchange(0);
    submit_exchange(1);
    synchronize();
    EXPECT_EQ(got[0][7], std::byte{2});
  }
  EXPECT_FALSE(ranks[0]->failure() || ranks[1]->failure());
}

// Of different lengths and kinds in turn: what is left of one does not take what belongs to
// another.
TEST_F(OperationsAtOnce, leave_behind_what_is_theirs) {
  for (std::size_t round = 0; round < 60; ++round) {
    const auto value = static_cast<std::byte>(round);
    const std::size_t count = round % 4 == 3 ? 1000 : 8 * (round % 3 + 1);
    given[0].assign(given[0].size(), value);
    given[1].assign(given[1].size(), std::byte{1});
    const auto kind = round % 2 == 0 ? Collective::kBroadcast : Collective::kAllReduce;
    submit(1, kind, count);
    submit_message(1, false, 5);
    submit(0, kind, count);
    synchronize_one(0);
    submit_message(0, true, 5);
    synchronize();
    const auto sum = static_cast<std::byte>(round + 1);
    ASSERT_EQ(got[1][count - 1], round % 2 == 0 ? value : sum);
    ASSERT_EQ(got[1][0], value) << "the message came first, or not at all";
  }
  EXPECT_FALSE(ranks[0]->failure() || ranks[1]->failure());
}

TEST_F(OperationsAtOnce, keep_their_order_with_what_needs_a_run) {
  for (std::size_t round = 0; round < 50; ++round) {
    const std::size_t count = round % 3 == 1 ? 20'000 : 8 + round % 5;
    const auto value = static_cast<std::byte>(round);
    given[0].assign(given[0].size(), value);
    const bool sender_first = round % 2 == 0;
    submit_message(sender_first ? 0 : 1, sender_first, count);
    submit_message(sender_first ? 1 : 0, !sender_first, count);
    submit(0, Collective::kBroadcast, 4);
    submit(1, Collective::kBroadcast, 4);
    synchronize();
    ASSERT_EQ(got[1][0], value);
    ASSERT_EQ(got[1][count - 1], value);
  }
  EXPECT_FALSE(ranks[0]->failure() || ranks[1]->failure());
}

TEST_F(OperationsAtOnce, that_do_not_agree_fail_in_the_call) {
  submit(0, Collective::kBroadcast);
  submit(1, Collective::kBroadcast);
  synchronize();
  submit(0, Collective::kBroadcast);
  submit(1, Collective::kBroadcast, 9);
  ASSERT_TRUE(ranks[1]->known_failure());
  const std::string text = ranks[1]->known_failure()->what();
  EXPECT_NE(text.find("count 9"), std::string::npos) << text;
  EXPECT_NE(text.find("count 8"), std::string::npos) << text;
}

TEST_F(OperationsAtOnce, that_wait_and_do_not_agree_fail) {
  submit(1, Collective::kBroadcast);
  submit(0, Collective::kBroadcast);
  synchronize();
  submit(1, Collective::kBroadcast);
  submit(0, Collective::kBroadcast, 9);
  stream(1).synchronize();
  ASSERT_TRUE(ranks[1]->known_failure());
  const std::string text = ranks[1]->known_failure()->what();
  EXPECT_NE(text.find("count 9"), std::string::npos) << text;
  EXPECT_NE(text.find("count 8"), std::string::npos) << text;
}

TEST_F(OperationsAtOnce, that_wait_for_a_message_and_get_another_fail) {
  submit_message(1, false);
  submit_message(0, true);
  synchronize();
  submit_message(1, false);
  submit_message(0, true, 9);
  stream(1).synchronize();
  ASSERT_TRUE(ranks[1]->known_failure());
  const std::string text = ranks[1]->known_failure()->what();
  EXPECT_NE(text.find("count 9"), std::string::npos) << text;
  EXPECT_NE(text.find("count 8"), std::string::npos) << text;
}

TEST_F(OperationsAtOnce, that_wait_fail_with_what_a_link_throws) {
  submit(1, Collective::kBroadcast);
  submit(0, Collective::kBroadcast);
  synchronize();
  submit(1, Collective::kBroadcast);
  seen[1].fails = true;
  stream(1).synchronize();
  ASSERT_TRUE(ranks[1]->failure());
  EXPECT_NE(std::string(ranks[1]->failure()->what()).find("the line is dead"), std::string::npos);
}

TEST_F(OperationsAtOnce, of_groups_that_do_not_agree_fail_in_the_call) {
  submit_exchange(0);
  submit_exchange(1);
  synchronize();
  submit_exchange(0);
  submit_exchange(1, true, 9);
  ASSERT_TRUE(ranks[1]->known_failure());
  const std::string text = ranks[1]->known_failure()->what();
  EXPECT_NE(text.find("count 9"), std::string::npos) << text;
  EXPECT_NE(text.find("count 8"), std::string::npos) << text;
}

struct PolledOperations : OperationsAtOnce {
  PolledOperations() : OperationsAtOnce(false) {}
};

// Only a poll of all might bring in what they wait for.
TEST_F(PolledOperations, have_runs) {
  const auto broadcast = seen_in([&] {
    submit(0, Collective::kBroadcast);
    submit(1, Collective::kBroadcast);
    submit_message(0, true);
    submit_message(1, false);
    submit_exchange(0);
    submit_exchange(1);
    synchronize();
  });
  for (const Counts& of : broadcast) {
    EXPECT_EQ(of.quiet, 0);
    EXPECT_EQ(of.loud, 4);
  }
}

// As a run tells it: links that have thrown are not used again, and what failed is the
// communicator's failure.
TEST_F(OperationsAtOnce, fail_with_what_a_link_throws) {
  submit(0, Collective::kAllReduce);
  submit(1, Collective::kAllReduce);
  synchronize();
  seen[0].fails = true;
  submit(0, Collective::kAllReduce);
  stream(0).synchronize();
  ASSERT_TRUE(ranks[0]->failure());
  EXPECT_NE(std::string(ranks[0]->failure()->what()).find("the line is dead"), std::string::npos);
}

TEST_F(OperationsAtOnce, fail_with_what_the_link_of_a_message_throws) {
  submit_message(1, true);
  submit_message(0, false);
  synchronize();
  seen[0].fails = true;
  submit_message(0, false);
  stream(0).synchronize();
  ASSERT_TRUE(ranks[0]->failure());
  EXPECT_NE(std::string(ranks[0]->failure()->what()).find("the line is dead"), std::string::npos);
}

// What was sent before that is not sent again.
TEST_F(OperationsAtOnce, of_groups_fail_with_what_a_link_throws) {
  submit_exchange(1);
  submit_exchange(0);
  synchronize();
  seen[0].forget();
  seen[0].fails = true;
  submit_exchange(0);
  stream(0).synchronize();
  ASSERT_TRUE(ranks[0]->failure());
  EXPECT_NE(std::string(ranks[0]->failure()->what()).find("the line is dead"), std::string::npos);
  EXPECT_EQ(seen[0].quiet, 1);
  EXPECT_EQ(seen[0].loud, 0);
}

}  // namespace
}  // namespace catenary
