#include "src/bootstrap/authenticate.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>
#include <future>
#include <thread>

#include "src/base/error.h"
#include "src/base/unique_fd.h"
#include "src/bootstrap/stream_socket.h"

namespace catenary {
namespace {

struct Pair {
  UniqueFd a;
  UniqueFd b;
};

Pair connected_pair() {
  int fds[2];
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
  return {UniqueFd(fds[0]), UniqueFd(fds[1])};
}

Wait within_ms(std::int64_t ms) { return {Deadline::after_ms(ms), nullptr}; }

std::future<Key> prove(int fd, Key key, Side side, std::string purpose) {
  return std::async(std::launch::async,
                    [=] { return prove_both(fd, key, side, purpose, within_ms(2000)); });
}

template <typename Call>
ErrorCode code_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code();
  }
  ADD_FAILURE() << "did not throw";
  return ErrorCode::kInternal;
}

TEST(ProveBoth, holders_of_one_key_agree_on_a_session_key) {
  const Key key = random_key();
  Pair pair = connected_pair();
  auto acceptor = prove(pair.b.get(), key, Side::kAcceptor, "test");
  const Key mine = prove_both(pair.a.get(), key, Side::kInitiator, "test", within_ms(2000));
  EXPECT_EQ(mine, acceptor.get());
  EXPECT_NE(mine, key);
}

TEST(ProveBoth, session_keys_are_fresh) {
  const Key key = random_key();
  Key seen[2];
  for (Key& session : seen) {
    Pair pair = connected_pair();
    auto acceptor = prove(pair.b.get(), key, Side::kAcceptor, "test");
    session = prove_both(pair.a.get(), key, Side::kInitiator, "test", within_ms(2000));
    acceptor.get();
  }
  EXPECT_NE(seen[0], seen[1]);
}

TEST(ProveBoth, another_key_is_refused_by_the_acceptor) {
  Pair pair = connected_pair();
  auto initiator = prove(pair.a.get(), random_key(), Side::kInitiator, "test");
  EXPECT_EQ(code_of([&] {
              prove_both(pair.b.get(), random_key(), Side::kAcceptor, "test", within_ms(2000));
            }),
            ErrorCode::kRemote);
  pair.b.reset();
  EXPECT_EQ(code_of([&] { initiator.get(); }), ErrorCode::kRemote);
}

TEST(ProveBoth, an_impostor_root_is_refused_by_the_initiator) {
  const Key key = random_key();
  Pair pair = connected_pair();
  std::thread impostor([&] {
    std::array<std::byte, 40> greeting;
    receive_all(pair.b.get(), greeting, within_ms(2000), "test");
    Nonce nonce{};
    send_all(pair.b.get(), make_greeting(Side::kAcceptor, nonce), within_ms(2000), "test");
    Mac proof;
    receive_all(pair.b.get(), proof, within_ms(2000), "test");
    send_all(pair.b.get(), proof, within_ms(2000), "test");  // reflects the initiator's own
  });
  EXPECT_EQ(
      code_of([&] { prove_both(pair.a.get(), key, Side::kInitiator, "test", within_ms(2000)); }),
      ErrorCode::kRemote);
  impostor.join();
}

TEST(ProveBoth, another_purpose_is_refused) {
  const Key key = random_key();
  Pair pair = connected_pair();
  auto initiator = prove(pair.a.get(), key, Side::kInitiator, "shm 1 to 2");
  EXPECT_EQ(code_of([&] {
              prove_both(pair.b.get(), key, Side::kAcceptor, "shm 1 to 3", within_ms(2000));
            }),
            ErrorCode::kRemote);
  pair.b.reset();
  EXPECT_THROW(initiator.get(), Error);
}

TEST(ProveBoth, two_initiators_refuse_each_other) {
  const Key key = random_key();
  Pair pair = connected_pair();
  auto other = prove(pair.b.get(), key, Side::kInitiator, "test");
  EXPECT_EQ(
      code_of([&] { prove_both(pair.a.get(), key, Side::kInitiator, "test", within_ms(2000)); }),
      ErrorCode::kRemote);
  EXPECT_THROW(other.get(), Error);
}

TEST(ProveBoth, a_silent_peer_ends_at_the_deadline) {
  Pair pair = connected_pair();
  EXPECT_EQ(code_of([&] {
              prove_both(pair.a.get(), random_key(), Side::kAcceptor, "test", within_ms(80));
            }),
            ErrorCode::kTimeout);
}

TEST(ProveBoth, cancelling_ends_it_soon) {
  Pair pair = connected_pair();
  std::atomic<bool> cancelled = false;
  std::thread canceller([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    cancelled.store(true, std::memory_order_release);
  });
  const std::int64_t begin = now_ns();
  EXPECT_EQ(code_of([&] {
              prove_both(pair.a.get(), random_key(), Side::kInitiator, "test",
                         {Deadline::after_ms(5000), &cancelled});
            }),
            ErrorCode::kInvalidUsage);
  EXPECT_LT(now_ns() - begin, 1'000'000'000);
  canceller.join();
}

TEST(ProveBoth, reads_nothing_beyond_the_handshake) {
  const Key key = random_key();
  Pair pair = connected_pair();
  std::thread peer([&] {
    prove_both(pair.b.get(), key, Side::kAcceptor, "test", within_ms(2000));
    send_all(pair.b.get(), bytes_of("next"), within_ms(2000), "test");
  });
  prove_both(pair.a.get(), key, Side::kInitiator, "test", within_ms(2000));
  std::array<std::byte, 4> next;
  receive_all(pair.a.get(), next, within_ms(2000), "test");
  EXPECT_TRUE(std::ranges::equal(next, bytes_of("next")));
  peer.join();
}

}  // namespace
}  // namespace catenary
