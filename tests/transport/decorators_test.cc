#include <gtest/gtest.h>

#include "src/base/error.h"
#include "src/transport/faulty_transport.h"
#include "src/transport/forwarding_links.h"
#include "src/transport/traced_transport.h"
#include "transports/loopback/transport.h"

namespace catenary {
namespace {

const Config kConfig;

std::unique_ptr<Transport> attached_to_itself(std::unique_ptr<Transport> transport) {
  const auto verdict = transport->attach(std::vector<Bytes>{transport->address()}, Wait{});
  EXPECT_EQ(verdict, std::vector<bool>{true});
  return transport;
}

std::unique_ptr<Transport> make_loopback() {
  TransportContext context;
  context.slots = 2;
  context.slot_bytes = 64;
  context.config = &kConfig;
  return loopback::make_transport(context);
}

// A link with ways of its own to copy.
struct OwnRecv final : RecvLink {
  explicit OwnRecv(std::size_t& bytes) : bytes_read(bytes) {}
  ByteView try_peek() override { return {}; }
  void release() override {}
  void read(std::byte*, ByteView from) override { bytes_read += from.size(); }
  std::size_t& bytes_read;
};
struct OwnSend final : SendLink {
  explicit OwnSend(std::size_t& bytes) : bytes_written(bytes) {}
  ByteSpan try_acquire(std::size_t) override { return {}; }
  void write(std::byte*, ByteView data) override { bytes_written += data.size(); }
  void commit(std::size_t) override {}
  bool try_flush() override { return true; }
  std::size_t& bytes_written;
};

TEST(ForwardingLinks, copy_as_the_link_inside_does) {
  const Bytes data(100);
  std::size_t bytes_read = 0;
  ForwardingRecvLink(std::make_unique<OwnRecv>(bytes_read)).read(nullptr, data);
  EXPECT_EQ(bytes_read, data.size());
  std::size_t bytes_written = 0;
  ForwardingSendLink(std::make_unique<OwnSend>(bytes_written)).write(nullptr, data);
  EXPECT_EQ(bytes_written, data.size());
}

constexpr LinkSpec kSelf = {0, Channel::kPointToPoint};

TEST(TracedTransport, counts_messages_bytes_and_empties) {
  TracedTransport traced(attached_to_itself(make_loopback()));
  {
    const auto send = traced.connect(kSelf);
    const auto recv = traced.listen(kSelf);
    EXPECT_TRUE(recv->try_peek().empty());
    for (const std::size_t bytes : {10u, 60u}) {
      send->try_acquire(bytes);
      send->commit(bytes);
    }
    EXPECT_TRUE(send->try_acquire(1).empty());
    recv->try_peek();
    recv->release();
  }
  const std::vector<LinkCounts> counts = traced.counts();
  ASSERT_EQ(counts.size(), 2u);
  EXPECT_TRUE(counts[0].sends);
  EXPECT_EQ(counts[0].channel, Channel::kPointToPoint);
  EXPECT_EQ(counts[0].messages, 2u);
  EXPECT_EQ(counts[0].bytes, 70u);
  EXPECT_EQ(counts[0].empties, 1u);
  EXPECT_FALSE(counts[1].sends);
  EXPECT_EQ(counts[1].messages, 1u);
  EXPECT_EQ(counts[1].bytes, 10u);
  EXPECT_EQ(counts[1].empties, 1u);
}

// Which of 200 tries to receive a waiting message fail.
std::vector<bool> delays_of(const Faults& faults) {
  const auto transport = attached_to_itself(make_faulty_transport(make_loopback(), faults));
  const auto send = transport->connect(kSelf);
  const auto recv = transport->listen(kSelf);
  std::vector<bool> delays;
  while (delays.size() < 200) {
    while (send->try_acquire(8).empty()) {
    }
    send->commit(8);
    bool is_delayed = true;
    do {
      is_delayed = recv->try_peek().empty();
      delays.push_back(is_delayed);
    } while (is_delayed);
    recv->release();
  }
  return delays;
}

TEST(FaultyTransport, delays_are_frequent_and_repeat_with_the_seed) {
  const auto first = delays_of({.seed = 3, .delays_in_1000 = 500});
  const auto count = std::count(first.begin(), first.end(), true);
  EXPECT_GT(count, 50);
  EXPECT_LT(count, 150);
  EXPECT_EQ(first, delays_of({.seed = 3, .delays_in_1000 = 500}));
  EXPECT_NE(first, delays_of({.seed = 4, .delays_in_1000 = 500}));
}

TEST(FaultyTransport, starves_for_as_long_as_asked) {
  const auto tries = delays_of({.seed = 1, .delays_in_1000 = 100, .starved_tries = 9});
  std::size_t run = 0;
  std::size_t runs = 0;
  for (const bool is_delayed : tries) {
    if (is_delayed) {
      ++run;
    } else if (run != 0) {
      EXPECT_GE(run, 10u);
      ++runs;
      run = 0;
    }
  }
  EXPECT_GT(runs, 0u);
}

TEST(FaultyTransport, a_link_dies_after_as_many_messages_as_asked) {
  const auto transport =
      attached_to_itself(make_faulty_transport(make_loopback(), {.dies_after_messages = 2}));
  const auto send = transport->connect(kSelf);
  for (int i = 0; i < 2; ++i) {
    ASSERT_FALSE(send->try_acquire(8).empty());
    send->commit(8);
  }
  try {
    send->try_acquire(8);
    ADD_FAILURE() << "a dead peer took a third message";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kRemote);
  }
}

}  // namespace
}  // namespace catenary
