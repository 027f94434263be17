// Who has no business here: strangers at the root's port, and members that misbehave. They are
// dropped without a word and harm nobody.

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <deque>

#include "src/bootstrap/authenticate.h"
#include "src/bootstrap/caller.h"
#include "src/bootstrap/stream_socket.h"
#include "tests/bootstrap/bootstrap_support.h"

namespace catenary {
namespace {

UnsharedFd call(const UniqueId& id) {
  Connection connection = connect_once(decode_unique_id(id).root, within_ms(2000));
  EXPECT_TRUE(connection.fd) << errno_text(connection.error_number);
  return std::move(connection.fd);
}

// What the root says until it closes; nullopt if it does not within `ms`.
std::optional<Bytes> heard_until_closed(int fd, std::int64_t ms) {
  Bytes heard;
  std::array<std::byte, 256> bytes;
  const Wait wait = within_ms(ms);
  while (!wait.deadline.passed()) {
    const Transfer transfer = try_receive(fd, bytes);
    if (transfer.state == Transfer::State::kMoved) {
      heard.insert(heard.end(), bytes.begin(),
                   bytes.begin() + static_cast<std::ptrdiff_t>(transfer.bytes));
    } else if (transfer.state == Transfer::State::kNotYet) {
      wait_slice(fd, POLLIN, wait);
    } else {
      return heard;
    }
  }
  return std::nullopt;
}

void expect_four_ranks_join(const UniqueId& id, const Config& config, std::int64_t within) {
  const std::int64_t begin = now_ns();
  expect_no_errors(run_ranks(4, [&](int rank) {
    Membership membership(id, rank, 4, within_ms(10000), config);
    membership.barrier(within_ms(5000));
  }));
  EXPECT_LT((now_ns() - begin) / 1'000'000, within);
}

TEST(Stranger, who_talks_garbage_hears_nothing) {
  const Config config = loopback();
  const UniqueId id = create_unique_id(config);
  const std::string_view garbage[] = {
      "GET / HTTP/1.1\r\nHost: localhost\r\nUser-Agent: something that fills a greeting\r\n\r\n",
      "ctnry-A1 the greeting of the other side, and then some more of it",
  };
  for (const std::string_view text : garbage) {
    const UnsharedFd fd = call(id);
    send_all(fd.get(), bytes_of(text), within_ms(1000), "test");
    const auto heard = heard_until_closed(fd.get(), 1000);
    ASSERT_TRUE(heard.has_value()) << "still open";
    EXPECT_TRUE(heard->empty());
  }
  expect_four_ranks_join(id, config, 1000);
}

// What the root answers to a greeting that is followed by a proof.
std::size_t heard_after(const UniqueId& id, const Greeting& greeting, const Mac& proof) {
  const UnsharedFd fd = call(id);
  send_all(fd.get(), greeting, within_ms(1000), "test");
  try_send(fd.get(), proof);  // the connection may be closed by now
  const auto heard = heard_until_closed(fd.get(), 1000);
  EXPECT_TRUE(heard.has_value()) << "still open";
  return heard.value_or(Bytes{}).size();
}

TEST(Stranger, who_greets_without_the_seal_of_a_holder_hears_nothing) {
  const UniqueId id = create_unique_id(loopback());
  for (const Key& key : {random_key(), random_key()}) {
    const Greeting sealed_otherwise =
        make_greeting(Side::kInitiator, sealed_nonce(key, kControlPurpose));
    EXPECT_EQ(heard_after(id, sealed_otherwise, key), 0u);
    EXPECT_EQ(heard_after(id, make_greeting(Side::kInitiator, key), key), 0u);
  }
}

// Who listens on the way can repeat a greeting: that gives neither a proof nor a place.
TEST(Stranger, who_repeats_a_greeting_hears_nothing_that_depends_on_the_secret) {
  const UniqueId id = create_unique_id(loopback());
  const Key secret = decode_unique_id(id).secret;
  const Greeting greeting = make_greeting(Side::kInitiator, sealed_nonce(secret, kControlPurpose));
  EXPECT_EQ(heard_after(id, greeting, random_key()), sizeof(Greeting));
  EXPECT_LE(heard_after(id, greeting, random_key()), sizeof(Greeting));
  expect_four_ranks_join(id, loopback(), 1000);
}

TEST(Stranger, who_says_nothing_is_dropped_after_two_seconds) {
  const Config config = loopback();
  const UniqueId id = create_unique_id(config);
  const UnsharedFd silent = call(id);
  const UnsharedFd slow = call(id);
  send_all(slow.get(), bytes_of("ctnry"), within_ms(1000), "test");
  const UnsharedFd half_closed = call(id);
  ::shutdown(half_closed.get(), SHUT_WR);
  const std::int64_t begin = now_ns();
  expect_four_ranks_join(id, config, 1000);
  EXPECT_TRUE(heard_until_closed(half_closed.get(), 500).has_value());
  for (const int fd : {silent.get(), slow.get()}) {
    const auto heard = heard_until_closed(fd, 4000);
    ASSERT_TRUE(heard.has_value()) << "still open";
    EXPECT_TRUE(heard->empty());
  }
  EXPECT_GE(now_ns() - begin, 1'500'000'000);
}

TEST(Stranger, a_flood_of_them_does_not_keep_the_ranks_out) {
  const Config config = loopback();
  const UniqueId id = create_unique_id(config);
  std::atomic<bool> stop = false;
  std::atomic<int> calls = 0;
  std::thread flood([&] {
    std::deque<UnsharedFd> open;
    const SocketAddress root = decode_unique_id(id).root;
    while (!stop.load()) {
      Connection connection = connect_once(root, within_ms(1000));
      if (!connection.fd) continue;
      if (calls.fetch_add(1) % 3 == 0) try_send(connection.fd.get(), bytes_of("noise"));
      open.push_back(std::move(connection.fd));
      if (open.size() > 200) open.pop_front();
    }
  });
  while (calls.load() < 300) std::this_thread::yield();
  expect_four_ranks_join(id, config, 4000);
  stop.store(true);
  flood.join();
}

// Many ranks that connect at once, each slow to prove itself, and strangers who come after them.
TEST(Stranger, never_takes_the_place_of_a_holder) {
  const UniqueId id = create_unique_id(loopback());
  const Key secret = decode_unique_id(id).secret;
  struct Holder {
    UnsharedFd fd;
    Handshake handshake;
  };
  std::vector<Holder> holders;
  for (int i = 0; i < 300; ++i) {
    Holder holder = {call(id),
                     {secret, kControlPurpose, sealed_nonce(secret, kControlPurpose), {}}};
    send_all(holder.fd.get(), make_greeting(Side::kInitiator, holder.handshake.initiator),
             within_ms(1000), "test");
    Greeting answer;
    receive_all(holder.fd.get(), answer, within_ms(2000), "test");
    holder.handshake.acceptor = *parse_greeting(Side::kAcceptor, answer);
    holders.push_back(std::move(holder));
  }
  std::deque<UnsharedFd> strangers;
  for (int i = 0; i < 2 * static_cast<int>(kMostStrangers); ++i) {
    strangers.push_back(call(id));
    if (i % 2 == 0) try_send(strangers.back().get(), bytes_of("noise"));
  }
  EXPECT_TRUE(heard_until_closed(strangers.front().get(), 1500).has_value()) << "not crowded out";
  for (const Holder& holder : holders) {
    send_all(holder.fd.get(), holder.handshake.proof(Side::kInitiator), within_ms(1000), "test");
    Mac proof;
    ASSERT_NO_THROW(receive_all(holder.fd.get(), proof, within_ms(2000), "test"));
    EXPECT_TRUE(equal_secrets(proof, holder.handshake.proof(Side::kAcceptor)));
  }
}

TEST(Stranger, with_another_secret_is_refused_and_the_others_go_on) {
  const Config config = loopback();
  const UniqueId id = create_unique_id(config);
  Rendezvous other = decode_unique_id(id);
  other.secret = random_key();
  const auto errors = run_ranks(3, [&](int rank) {
    Membership(rank == 2 ? encode_unique_id(other) : id, rank == 2 ? 1 : rank, 2, within_ms(20000),
               config);
  });
  EXPECT_FALSE(errors[0].has_value());
  EXPECT_FALSE(errors[1].has_value());
  expect_error(errors[2], ErrorCode::kRemote, "is refused by the root");
  EXPECT_EQ(std::string(errors[2]->what()).find("secret "), std::string::npos);
}

TEST(Stranger, with_another_secret_is_told_to_who_waits_in_vain) {
  const Config config = loopback();
  const UniqueId id = create_unique_id(config);
  Rendezvous other = decode_unique_id(id);
  other.secret = random_key();
  const auto errors = run_ranks(2, [&](int rank) {
    Membership(rank == 1 ? encode_unique_id(other) : id, rank, 2, within_ms(1500), config);
  });
  expect_error(errors[0], ErrorCode::kTimeout, "was turned away: it does not hold our secret");
}

TEST(Impostor, at_the_roots_address_is_refused_by_the_ranks) {
  Config config = loopback();
  config.comm_id = free_address();
  SocketAddress address = SocketAddress::resolve(config.comm_id, AF_INET);
  const UnsharedFd listener = listen_on(address);
  std::atomic<bool> stop = false;
  std::thread impostor([&] {
    while (!stop.load()) {
      wait_slice(listener.get(), POLLIN, within_ms(20), 20);
      const UnsharedFd fd = accept_next(listener.get());
      if (!fd) continue;
      std::array<std::byte, 72> bytes;
      wait_slice(fd.get(), POLLIN, within_ms(100));
      try_receive(fd.get(), bytes);
      try_send(fd.get(), make_greeting(Side::kAcceptor, random_key()));
      wait_slice(fd.get(), POLLIN, within_ms(100));
      try_receive(fd.get(), bytes);
      try_send(fd.get(), random_key());
      wait_slice(fd.get(), POLLIN, within_ms(100));
    }
  });
  const auto errors = run_ranks(2, [&](int rank) {
    if (rank == 1) Membership(create_unique_id(config), 1, 2, within_ms(20000), config);
  });
  stop.store(true);
  impostor.join();
  expect_error(errors[1], ErrorCode::kRemote, "does not hold our secret");
}

// A connection that has proven to hold the secret, but not yet joined.
ControlChannel proven(const UniqueId& id) {
  UnsharedFd fd = call(id);
  const Key key = prove_both(fd.get(), decode_unique_id(id).secret, Side::kInitiator,
                             kControlPurpose, within_ms(2000));
  return ControlChannel(std::move(fd), key, Side::kInitiator);
}

TEST(Misbehaviour, of_the_proven_ends_their_connection) {
  Config config = loopback();
  config.init_timeout_s = 1;  // so long the root waits for a proven rank to join
  const UniqueId id = create_unique_id(config);
  {
    ControlChannel senseless = proven(id);
    senseless.send(Frame{MessageType::kGather, Bytes(10)});
    EXPECT_TRUE(heard_until_closed(senseless.fd(), 1000).has_value());
  }
  {
    ControlChannel malformed = proven(id);
    malformed.send(Frame{MessageType::kJoin, Bytes(10)});
    EXPECT_TRUE(heard_until_closed(malformed.fd(), 1000).has_value());
  }
  {
    ControlChannel unsealed = proven(id);
    try_send(unsealed.fd(), Bytes(200, std::byte{0xff}));
    EXPECT_TRUE(heard_until_closed(unsealed.fd(), 1000).has_value());
  }
  ControlChannel silent = proven(id);
  expect_four_ranks_join(id, config, 1000);
  EXPECT_TRUE(heard_until_closed(silent.fd(), 4000).has_value());
}

TEST(Misbehaviour, of_a_member_is_its_death_to_the_others) {
  const Config config = loopback();
  const UniqueId id = create_unique_id(config);
  const auto errors = run_ranks(2, [&](int rank) {
    if (rank == 0) {
      Membership membership(id, 0, 2, within_ms(5000), config);
      if (const auto fault = fault_soon(membership)) throw Error(*fault);
      return;
    }
    ControlChannel channel = proven(id);
    channel.send(JoinMessage{library_version(), 1, 2, ProcessName::mine()}.encode());
    channel.send(Frame{MessageType::kWelcome, Bytes(32)});
    heard_until_closed(channel.fd(), 1000);
  });
  expect_error(errors[0], ErrorCode::kRemote, "rank 1 (");
}

}  // namespace
}  // namespace catenary
