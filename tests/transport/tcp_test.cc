// What is special about TCP: strangers at the port, keys, and connections that break.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cstring>
#include <functional>
#include <thread>

#include "src/base/error.h"
#include "tests/transport/attached_ranks.h"
#include "transports/tcp/address.h"
#include "transports/tcp/transport.h"

namespace catenary::test {
namespace {

Config make_config() {
  Config config;
  config.socket_ifname = "=lo";
  return config;
}
const Config kConfig = make_config();

using Ranks = std::vector<std::unique_ptr<Transport>>;

std::unique_ptr<Transport> make_rank(int rank, const std::array<std::byte, 32>& key) {
  TransportContext context;
  context.rank = rank;
  context.nranks = 2;
  context.key = key;
  context.slot_bytes = 4096;
  context.slots = 4;
  context.config = &kConfig;
  return tcp::make_transport(context);
}

void attach_all(const Ranks& ranks, const std::vector<Bytes>& addresses) {
  for (const auto& rank : ranks) {
    EXPECT_EQ(rank->attach(addresses, Wait{}), std::vector<bool>(addresses.size(), true));
  }
}

UniqueFd connect_as_stranger(ByteView address) {
  const SocketAddress::Raw raw = tcp::parse_address(address)->raw();
  UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(::connect(socket.get(), raw.get(), raw.bytes), 0);
  return socket;
}

void say(const UniqueFd& socket, ByteView bytes) {
  ::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
}

// Polls all ranks until `ready` holds; false after ten seconds.
bool poll_until(const Ranks& ranks, const std::function<bool()>& ready) {
  const Deadline deadline = Deadline::after_ms(10'000);
  while (!ready()) {
    for (const auto& rank : ranks) rank->poll();
    std::this_thread::yield();
    if (deadline.passed()) return false;
  }
  return true;
}

// The code and text with which `action`, tried again and again, ends.
std::string failure_of(const Ranks& ranks, const std::function<void()>& action) {
  std::string text = "no failure";
  poll_until(ranks, [&] {
    try {
      action();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kRemote);
      text = error.what();
      return true;
    }
    return false;
  });
  return text;
}

Bytes introduction_and_greeting() {
  const LinkIntroduction link = {1, 0, 0};
  const ByteView raw = std::as_bytes(std::span(&link, 1));
  Bytes bytes(raw.begin(), raw.end());
  const Greeting greeting = make_greeting(Side::kInitiator, Nonce{});
  bytes.insert(bytes.end(), greeting.begin(), greeting.end());
  return bytes;
}

TEST(Tcp, strangers_at_the_port_harm_nobody) {
  const auto key = random_test_key();
  Ranks ranks;
  for (int rank = 0; rank < 2; ++rank) ranks.push_back(make_rank(rank, key));
  const std::vector<Bytes> addresses = {ranks[0]->address(), ranks[1]->address()};
  attach_all(ranks, addresses);
  std::vector<UniqueFd> strangers;
  for (std::size_t bytes = 0; bytes < 300; bytes += 13) {
    strangers.push_back(connect_as_stranger(addresses[0]));
    say(strangers.back(), Bytes(bytes, std::byte{0xa5}));
  }
  // One that speaks the protocol and claims to be rank 1, but does not know the key.
  strangers.push_back(connect_as_stranger(addresses[0]));
  say(strangers.back(), introduction_and_greeting());
  say(strangers.back(), Bytes(sizeof(Mac), std::byte{0x11}));
  connect_as_stranger(addresses[0]).reset();
  const auto recv = ranks[0]->listen({1, Channel::kCollective});
  const auto send = ranks[1]->connect({0, Channel::kCollective});
  fill(send->try_acquire(4096), 1);
  send->commit(4096);
  ByteView view;
  ASSERT_TRUE(poll_until(ranks, [&] { return !(view = recv->try_peek()).empty(); }));
  EXPECT_NO_THROW(check(view, 4096, 1));
}

TEST(Tcp, who_holds_another_key_is_told_and_gets_nowhere) {
  Ranks ranks;
  ranks.push_back(make_rank(0, random_test_key()));
  ranks.push_back(make_rank(1, random_test_key()));
  attach_all(ranks, {ranks[0]->address(), ranks[1]->address()});
  const auto recv = ranks[0]->listen({1, Channel::kCollective});
  const auto send = ranks[1]->connect({0, Channel::kCollective});
  const std::string failure = failure_of(ranks, [&] { send->try_acquire(8); });
  EXPECT_NE(failure.find("rank 0"), std::string::npos) << failure;
  EXPECT_TRUE(recv->try_peek().empty());
}

TEST(Tcp, a_closed_port_is_an_error_of_the_link) {
  const auto key = random_test_key();
  Ranks ranks;
  ranks.push_back(make_rank(0, key));
  ranks.push_back(make_rank(1, key));
  const std::vector<Bytes> addresses = {ranks[0]->address(), ranks[1]->address()};
  attach_all(ranks, addresses);
  ranks.erase(ranks.begin());
  const auto send = ranks[0]->connect({0, Channel::kCollective});
  const std::string failure = failure_of(ranks, [&] { send->try_acquire(8); });
  EXPECT_NE(failure.find("refused"), std::string::npos) << failure;
}

TEST(Tcp, what_came_before_the_end_is_read_and_then_the_peer_is_named) {
  const auto key = random_test_key();
  Ranks ranks;
  ranks.push_back(make_rank(0, key));
  ranks.push_back(make_rank(1, key));
  attach_all(ranks, {ranks[0]->address(), ranks[1]->address()});
  const auto recv = ranks[0]->listen({1, Channel::kCollective});
  auto send = ranks[1]->connect({0, Channel::kCollective});
  for (std::uint64_t i = 0; i < 3; ++i) {
    fill(send->try_acquire(100), i);
    send->commit(100);
  }
  ASSERT_TRUE(poll_until(ranks, [&] { return !recv->try_peek().empty(); }));
  send.reset();
  ranks.pop_back();
  for (std::uint64_t i = 0; i < 3; ++i) {
    ByteView view;
    ASSERT_TRUE(poll_until(ranks, [&] { return !(view = recv->try_peek()).empty(); }));
    EXPECT_NO_THROW(check(view, 100, i));
    recv->release();
  }
  const std::string failure = failure_of(ranks, [&] { recv->try_peek(); });
  EXPECT_NE(failure.find("rank 1"), std::string::npos) << failure;
}

TEST(Tcp, a_length_beyond_the_slot_is_the_peers_fault) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
  const UniqueFd ours(ends[0]);
  SocketReceiver receiver({2, 64}, 5);
  receiver.connected(UniqueFd(ends[1]));
  const std::uint32_t words[] = {4, 0x01020304, 65};
  say(ours, std::as_bytes(std::span(words)));
  EXPECT_EQ(receiver.try_peek().size(), 4u);
  receiver.release();
  EXPECT_EQ(failure_of({}, [&] { receiver.try_peek(); }),
            "lost the connection to rank 5: it sent a message of 65 bytes for slots of 64");
}

TEST(Tcp, a_held_message_keeps_its_length_while_the_next_headers_come) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
  SocketSender sender({8, 64}, 0);
  SocketReceiver receiver({2, 64}, 1);
  sender.connected(UniqueFd(ends[0]));
  receiver.connected(UniqueFd(ends[1]));
  for (std::size_t i = 1; i <= 8; ++i) {
    fill(sender.try_acquire(i), i);
    sender.commit(i);
  }
  for (std::size_t i = 1; i <= 8; ++i) {
    for (int again = 0; again < 3; ++again) EXPECT_NO_THROW(check(receiver.try_peek(), i, i));
    receiver.release();
  }
}

TEST(Tcp, a_rank_without_an_interface_is_reached_by_nobody) {
  Config config;
  config.socket_ifname = "=no-such-interface";
  TransportContext context;
  context.config = &config;
  const auto rank = tcp::make_transport(context);
  EXPECT_TRUE(rank->address().empty());
  EXPECT_FALSE(rank->reaches(rank->address()));
}

}  // namespace
}  // namespace catenary::test
