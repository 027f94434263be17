// What is special about TCP: strangers at the port, keys, and connections that break.
#include "src/bootstrap/tcp.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <thread>

#include "src/base/error.h"
#include "src/base/refusals.h"
#include "src/bootstrap/stream_socket.h"
#include "src/transport/socket_hub.h"
#include "tests/transport/attached_ranks.h"
#include "transports/tcp/address.h"
#include "transports/tcp/transport.h"

namespace catenary::test {
namespace {

const Config& kConfig = loopback_config();

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
  const SocketAddress::Raw raw = tcp::parse_address(address)->socket.raw();
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

// Sends one message from rank 1 to rank 0 over a new link.
void expect_a_link(const Ranks& ranks) {
  const auto recv = ranks[0]->listen({1, Channel::kCollective});
  const auto send = ranks[1]->connect({0, Channel::kCollective});
  fill(send->try_acquire(100), 1);
  send->commit(100);
  ByteView view;
  ASSERT_TRUE(poll_until(ranks, [&] { return !(view = recv->try_peek()).empty(); }));
  EXPECT_NO_THROW(check(view, 100, 1));
}

bool is_closed(const UniqueFd& socket) {
  std::byte byte{};
  return try_receive(socket.get(), ByteSpan(&byte, 1)).state != Transfer::State::kNotYet;
}

TEST(Tcp, a_crowd_that_waits_at_the_port_does_not_keep_a_rank_out) {
  const auto key = random_test_key();
  Ranks ranks;
  for (int rank = 0; rank < 2; ++rank) ranks.push_back(make_rank(rank, key));
  const std::vector<Bytes> addresses = {ranks[0]->address(), ranks[1]->address()};
  attach_all(ranks, addresses);
  std::vector<UniqueFd> crowd;
  for (int i = 0; i < 700; ++i) crowd.push_back(connect_as_stranger(addresses[0]));
  std::atomic<bool> stop = false;
  std::atomic<int> calls = 0;
  std::thread flood([&] {
    std::array<UniqueFd, 50> passing;
    while (!stop.load()) {
      UniqueFd& socket = passing[static_cast<std::size_t>(calls.load()) % passing.size()];
      socket = connect_as_stranger(addresses[0]);
      if (calls.fetch_add(1) % 3 == 0) say(socket, Bytes(300, std::byte{0xa5}));
    }
  });
  while (calls.load() < 50) std::this_thread::yield();
  expect_a_link(ranks);
  stop.store(true);
  flood.join();
}

TEST(Tcp, strangers_who_say_nothing_are_dropped_although_nobody_presses) {
  const auto key = random_test_key();
  Ranks ranks;
  for (int rank = 0; rank < 2; ++rank) ranks.push_back(make_rank(rank, key));
  const std::vector<Bytes> addresses = {ranks[0]->address(), ranks[1]->address()};
  attach_all(ranks, addresses);
  const UniqueFd silent = connect_as_stranger(addresses[0]);
  const UniqueFd slow = connect_as_stranger(addresses[0]);
  say(slow, Bytes(10));
  expect_a_link(ranks);
  EXPECT_TRUE(poll_until(ranks, [&] { return is_closed(silent) && is_closed(slow); }));
}

TEST(Tcp, strangers_are_turned_away_although_nobody_is_awaited) {
  const auto key = random_test_key();
  Ranks ranks;
  ranks.push_back(make_rank(0, key));
  const std::vector<Bytes> addresses = {ranks[0]->address(), ranks[0]->address()};
  attach_all(ranks, addresses);
  const std::uint64_t refused = count_of_refusals(Refused::kLink);
  const UniqueFd silent = connect_as_stranger(addresses[0]);
  const UniqueFd loud = connect_as_stranger(addresses[0]);
  say(loud, Bytes(100, std::byte{0xa5}));
  EXPECT_TRUE(poll_until(ranks, [&] { return is_closed(silent) && is_closed(loud); }));
  EXPECT_EQ(count_of_refusals(Refused::kLink), refused + 2);
}

// The hub of rank 1, which sends to whoever listens at `receiver`.
std::unique_ptr<SocketHub> make_sender(const SocketAddress& receiver, const Key& key) {
  TransportContext context;
  context.rank = 1;
  context.nranks = 2;
  context.key = key;
  context.config = &kConfig;
  SocketListener own = open_listener(kConfig);
  return std::make_unique<SocketHub>(std::move(own.socket), context,
                                     std::vector<SocketPeer>{{receiver}, {own.address}});
}

UnsharedFd next_caller(SocketHub& hub, int listener) {
  const Deadline deadline = Deadline::after_ms(10'000);
  UnsharedFd socket;
  while (!socket && !deadline.passed()) {
    hub.poll();
    socket = accept_next(listener);
  }
  return socket;
}

TEST(Tcp, a_sender_whose_connection_is_cut_before_its_proof_tries_again) {
  const Key key = random_key();
  const SocketListener receiver = open_listener(kConfig);
  const auto hub = make_sender(receiver.address, key);
  const auto send = hub->connect({0, Channel::kPointToPoint});
  send->try_acquire(8);
  send->commit(8);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(next_caller(*hub, receiver.socket.get()));
  const UnsharedFd socket = next_caller(*hub, receiver.socket.get());
  ASSERT_TRUE(socket);
  LinkHandshake handshake = LinkHandshake::accept(key, 0, 2);
  const Deadline deadline = Deadline::after_ms(10'000);
  while (handshake.advance(socket.get()) == LinkHandshake::State::kBusy && !deadline.passed()) {
    hub->poll();
  }
  EXPECT_EQ(handshake.advance(socket.get()), LinkHandshake::State::kDone);
  while (!send->try_flush() && !deadline.passed()) hub->poll();
  EXPECT_TRUE(send->try_flush());
}

// Rank 0 of two, which awaits rank 1; tests are rank 1, and others.
class TcpHub : public ::testing::Test {
 protected:
  static TransportContext context_with(const Key& key) {
    TransportContext context;
    context.nranks = 2;
    context.key = key;
    context.config = &kConfig;
    return context;
  }

  const Key key = random_key();
  SocketListener listener = open_listener(kConfig);
  const SocketAddress address = listener.address;
  SocketHub hub{std::move(listener.socket), context_with(key), {{address}, {address}}};
  const std::unique_ptr<RecvLink> recv = hub.listen({1, Channel::kCollective});
};

// Each time as the sender of the same link, which holds one place at most.
TEST_F(TcpHub, lets_a_holder_of_the_key_who_comes_again_take_its_own_place) {
  const auto come = [&](LinkHandshake& handshake) {
    Connection connection = connect_once(address, {Deadline::after_ms(2000), nullptr});
    handshake.advance(connection.fd.get());
    // The receiver's greeting says that it took the introduction.
    pollfd entry = {connection.fd.get(), POLLIN, 0};
    for (int i = 0; i < 10'000 && entry.revents == 0; ++i) {
      hub.poll();
      ::poll(&entry, 1, 1);
    }
    return std::move(connection.fd);
  };
  LinkHandshake first = LinkHandshake::initiate(key, {1, 0, 0});
  LinkHandshake second = LinkHandshake::initiate(key, {1, 0, 0});
  const UnsharedFd old_one = come(first);
  const UnsharedFd new_one = come(second);
  EXPECT_EQ(second.advance(new_one.get()), LinkHandshake::State::kBusy);
  for (int i = 0; i < 10'000 && second.advance(new_one.get()) == LinkHandshake::State::kBusy; ++i) {
    hub.poll();
  }
  EXPECT_EQ(second.advance(new_one.get()), LinkHandshake::State::kDone);

  EXPECT_EQ(first.advance(old_one.get()), LinkHandshake::State::kFailed);
}

// He has listened on the way. The member goes on as if nothing had been.
TEST_F(TcpHub, has_no_place_for_who_repeats_what_a_member_has_said) {
  const Deadline deadline = Deadline::after_ms(10'000);
  const UnsharedFd member = connect_once(address, {deadline, nullptr}).fd;
  LinkHandshake handshake = LinkHandshake::initiate(key, {1, 0, 0});
  handshake.advance(member.get());
  pollfd answer = {member.get(), POLLIN, 0};
  while (::poll(&answer, 1, 1) == 0 && !deadline.passed()) hub.poll();
  const LinkIntroduction introduction = {1, 0, 0};
  const Greeting greeting = make_greeting(Side::kInitiator, handshake.nonce());
  const UnsharedFd stranger = connect_once(address, {deadline, nullptr}).fd;
  try_send(stranger.get(), std::as_bytes(std::span(&introduction, 1)));
  try_send(stranger.get(), greeting);
  Bytes heard(sizeof(Greeting) + sizeof(Mac));
  Transfer transfer = {Transfer::State::kNotYet};
  while (transfer.state != Transfer::State::kClosed && !deadline.passed()) {
    hub.poll();
    transfer = try_receive(stranger.get(), heard);
    EXPECT_LE(transfer.bytes, sizeof(Greeting));
  }
  EXPECT_EQ(transfer.state, Transfer::State::kClosed);
  auto state = LinkHandshake::State::kBusy;
  while (state == LinkHandshake::State::kBusy && !deadline.passed()) {
    hub.poll();
    state = handshake.advance(member.get());
  }
  EXPECT_EQ(state, LinkHandshake::State::kDone);
}

// Where links share a stream, the sleeper's own connection says nothing.
TEST(Tcp, who_sleeps_is_woken_by_short_messages_of_either_rank) {
  const auto key = random_test_key();
  Ranks ranks;
  for (int rank = 0; rank < 2; ++rank) ranks.push_back(make_rank(rank, key));
  attach_all(ranks, {ranks[0]->address(), ranks[1]->address()});
  std::unique_ptr<SendLink> sends[2];
  std::unique_ptr<RecvLink> receives[2];
  for (int rank = 0; rank < 2; ++rank) {
    sends[rank] = ranks[rank]->connect({1 - rank, Channel::kCollective});
    receives[rank] = ranks[rank]->listen({1 - rank, Channel::kCollective});
  }
  ASSERT_TRUE(poll_until(
      ranks, [&] { return ranks[0]->wait_descriptor() >= 0 && ranks[1]->wait_descriptor() >= 0; }));
  for (std::uint64_t i = 0; i < 3 * kShortInARow; ++i) {
    for (int sender = 0; sender < 2; ++sender) {
      const int sleeper = 1 - sender;
      const int descriptor = ranks[sleeper]->wait_descriptor();
      ASSERT_TRUE(receives[sleeper]->try_peek().empty());
      fill(sends[sender]->try_acquire(8), i);
      sends[sender]->commit(8);
      pollfd state = {descriptor, POLLIN, 0};
      ASSERT_EQ(::poll(&state, 1, 5000), 1) << "message " << i << " of rank " << sender;
      ByteView view;
      ASSERT_TRUE(
          poll_until(ranks, [&] { return !(view = receives[sleeper]->try_peek()).empty(); }));
      EXPECT_NO_THROW(check(view, 8, i));
      receives[sleeper]->release();
    }
  }
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
