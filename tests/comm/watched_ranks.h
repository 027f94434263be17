// Two ranks that one thread drives, whose links tell what they have seen: quiet commits and
// releases, each followed by a ring, and loud ones.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "src/base/error.h"
#include "src/comm/communicator.h"
#include "src/device/device.h"
#include "src/transport/forwarding_links.h"
#include "transports/loopback/transport.h"

namespace catenary {

// Of all links of a rank: what they have seen, also while the device's own thread drives.
struct Seen {
  std::atomic<int> quiet{0};  // commits and releases
  std::atomic<int> loud{0};
  std::atomic<int> rung{0};        // after quiet ones
  std::atomic<bool> fails{false};  // from now on looking for a message throws
  std::atomic<bool> has_thrown{false};
  std::atomic<bool> poll_fails{false};  // of its transport
  std::atomic<bool> drain_fails{false};
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
  void commit(std::size_t bytes) override {
    ++seen_.loud;
    inside().commit(bytes);
  }
  void commit_quietly(std::size_t bytes) override {
    ++seen_.quiet;
    inside().commit_quietly(bytes);
  }
  void ring_lightly() noexcept override {
    ++seen_.rung;
    inside().ring_lightly();
  }

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
  void release() override {
    ++seen_.loud;
    inside().release();
  }
  void release_quietly() override {
    ++seen_.quiet;
    inside().release_quietly();
  }
  void ring_lightly() noexcept override {
    EXPECT_FALSE(seen_.has_thrown) << "it was used again";
    ++seen_.rung;
    inside().ring_lightly();
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
  bool poll() override {
    if (seen_.poll_fails) throw_error(ErrorCode::kSystem, "the card is gone");
    return inside_->poll();
  }
  bool try_drain() override {
    if (seen_.drain_fails) throw_error(ErrorCode::kSystem, "the card is gone");
    return inside_->try_drain();
  }

 private:
  std::unique_ptr<Transport> inside_;
  Seen& seen_;
  const bool is_rung_;
};

// Two ranks that one thread drives, so that it is known who comes first.
struct WatchedRanks : testing::Test {
  explicit WatchedRanks(bool are_rung = true) {
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
  ~WatchedRanks() override {
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
  void submit_message(std::size_t rank, bool sends, std::size_t count = 8,
                      std::byte* buffer = nullptr) {
    std::byte* const usual = sends ? given[rank].data() : got[rank].data();
    const MessageRequest message{.buffer = buffer != nullptr ? buffer : usual,
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
  // Then nobody drives, either, so that what comes next can be done at once.
  void synchronize() {
    for (std::size_t rank = 0; rank < 2; ++rank) {
      stream(rank).synchronize();
      while (ranks[rank]->device().executor().driver_at_work()) std::this_thread::yield();
    }
  }
  void forget_all() {
    for (Seen& each : seen) each.forget();
  }
  // Once links are made and known, what `operation` makes of them.
  std::array<Counts, 2> seen_in(const std::function<void()>& operation) {
    operation();
    synchronize();
    forget_all();
    operation();
    return {Counts(seen[0]), Counts(seen[1])};
  }
  void expect_disagreement(std::size_t rank, const char* one, const char* other) {
    ASSERT_TRUE(ranks[rank]->known_failure());
    const std::string text = ranks[rank]->known_failure()->what();
    EXPECT_NE(text.find(one), std::string::npos) << text;
    EXPECT_NE(text.find(other), std::string::npos) << text;
  }
  void expect_dead_line(std::size_t rank) {
    ASSERT_TRUE(ranks[rank]->failure());
    const std::string text = ranks[rank]->failure()->what();
    EXPECT_NE(text.find("the line is dead"), std::string::npos) << text;
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

}  // namespace catenary
