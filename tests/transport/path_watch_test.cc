// The watch of ways to other hosts, as far as one host can show it; tests/hosts takes ways away.
#include "src/transport/path_watch.h"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <thread>

#include "src/base/config.h"
#include "src/base/refusals.h"
#include "src/bootstrap/stream_socket.h"
#include "src/bootstrap/tcp.h"

namespace catenary {
namespace {

using namespace std::chrono_literals;

Config loopback() {
  Config config;
  config.socket_ifname = "=lo";
  return config;
}

// Of this process: connections to these places.
int open_connections_to(const std::vector<std::optional<SocketAddress>>& places) {
  int count = 0;
  for (int fd = 3; fd < 1024; ++fd) {
    const std::string peer = SocketAddress::text_of_peer(fd);
    count += std::ranges::any_of(places, [&](const auto& each) { return each->text() == peer; });
  }
  return count;
}

// Two ranks, of which either may be missing or deaf. What the network has brought of them is for
// the test to say.
struct Pair {
  bool has_come = false;
  const Key key = random_key();
  std::vector<std::optional<SocketAddress>> places;
  std::unique_ptr<PathWatch> ranks[2];

  Pair() {
    SocketListener listeners[2] = {open_listener(loopback()), open_listener(loopback())};
    for (const SocketListener& each : listeners) places.emplace_back(each.address);
    for (int rank = 0; rank < 2; ++rank) {
      ranks[rank] = std::make_unique<PathWatch>(rank, key, std::move(listeners[rank]), places, 1,
                                                [this](int) { return has_come; });
    }
  }
  // For as long as patience and a new attempt take together.
  void look(std::chrono::milliseconds time = 4s) {
    for (const auto end = std::chrono::steady_clock::now() + time;
         std::chrono::steady_clock::now() < end; std::this_thread::sleep_for(20ms)) {
      for (const auto& rank : ranks) {
        if (rank) rank->check();
      }
    }
  }
};

TEST(PathWatch, finds_nothing_wrong_with_ways_that_are_there) {
  Pair pair;
  pair.ranks[0]->watch(1);
  pair.ranks[1]->watch(0);
  EXPECT_NO_THROW(pair.look());
}

// Whether he looks or not, and whatever others connect to him.
TEST(PathWatch, takes_nobody_for_lost_who_is_late_or_crowded) {
  Pair pair;
  const std::unique_ptr<PathWatch> late = std::move(pair.ranks[1]);
  std::vector<UnsharedFd> strangers;
  for (int i = 0; i < 20; ++i) {
    const Wait wait = {Deadline::after_ms(1000), nullptr};
    strangers.push_back(connect_once(*pair.places[1], wait).fd);
  }
  pair.ranks[0]->watch(1);
  EXPECT_NO_THROW(pair.look(3s));
  for (int i = 0; i < 5; ++i) {
    EXPECT_NO_THROW(late->check());
    EXPECT_NO_THROW(pair.look(200ms));
  }
}

bool is_open(const UnsharedFd& socket) {
  std::byte byte{};
  return try_receive(socket.get(), ByteSpan(&byte, 1)).state == Transfer::State::kNotYet;
}

TEST(PathWatch, lets_go_who_does_not_hold_its_key_and_nobody_else) {
  Pair pair;
  pair.ranks[0]->watch(1);
  pair.ranks[1]->watch(0);
  pair.look(1s);
  std::vector<UnsharedFd> strangers;
  const Wait wait = {Deadline::after_ms(5000), nullptr};
  for (int i = 0; i < 3 * static_cast<int>(kMostStrangers); ++i) {
    strangers.push_back(connect_once(*pair.places[1], wait).fd);
    if (i % 2 == 0) try_send(strangers.back().get(), Bytes(100, std::byte{0xa5}));
  }
  pair.look(3s);
  EXPECT_EQ(std::ranges::count_if(strangers, is_open), 0);
  strangers.clear();
  // Both watch ways on which nothing is wrong.
  EXPECT_EQ(open_connections_to(pair.places), 2);
}

// As one may in a crowd of strangers.
TEST(PathWatch, comes_again_when_it_was_cut_off_in_the_handshake) {
  Pair pair;
  SocketListener crowded = open_listener(loopback());
  PathWatch watch(0, pair.key, open_listener(loopback()), {pair.places[0], crowded.address}, 1,
                  [](int) { return false; });
  watch.watch(1);
  // First at every look, then now and then, but it does not give up.
  constexpr int kCalls = 22;
  int calls = 0;
  for (int i = 0; i < 500 && calls < kCalls; ++i) {
    EXPECT_NO_THROW(watch.check());
    std::this_thread::sleep_for(20ms);
    if (UnsharedFd next = accept_next(crowded.socket.get())) ++calls;
  }
  EXPECT_EQ(calls, kCalls);
}

// Where a rank comes that has cut off who watches it once, as one may whom strangers press.
class Presser {
 public:
  Presser()
      : watch_(0, pair_.key, open_listener(loopback()), {pair_.places[0], listener_.address}, 1,
               [](int) { return false; }) {}

  // The watch has come, and its kernel knows that ours has taken what it said.
  [[nodiscard]] bool is_called() {
    watch_.watch(1);
    call_ = accept_next(listener_.socket.get());
    std::array<std::byte, 256> said;
    return call_ && try_receive(call_.get(), said).state == Transfer::State::kMoved;
  }
  void cut_off() { call_ = UnsharedFd(); }
  // For longer than patience and a new attempt take together.
  void expect_that_it_takes_nobody_for_lost(int looks) {
    for (int i = 0; i < looks; ++i) {
      ASSERT_NO_THROW(watch_.check()) << "at look " << i;
      std::this_thread::sleep_for(20ms);
    }
  }
  const SocketListener& listener() const { return listener_; }

 private:
  Pair pair_;
  SocketListener listener_ = open_listener(loopback());
  PathWatch watch_;
  UnsharedFd call_;
};

// The system does not answer who wants to come again then.
TEST(PathWatch, takes_nobody_for_lost_who_has_cut_it_off_and_has_no_room) {
  Presser full;
  ASSERT_TRUE(full.is_called());
  constexpr int kRoom = 1;
  ASSERT_EQ(::listen(full.listener().socket.get(), kRoom), 0);
  std::vector<UnsharedFd> strangers;
  for (int i = 0; i < kRoom + 1; ++i) {
    strangers.push_back(
        connect_once(full.listener().address, {Deadline::after_ms(1000), nullptr}).fd);
  }
  full.cut_off();
  full.expect_that_it_takes_nobody_for_lost(200);
}

// Its system has answered, and then has no room for what it answered to: we call that connected.
TEST(PathWatch, takes_nobody_for_lost_who_has_cut_it_off_and_does_not_let_it_in) {
  Presser half_open;
  ASSERT_TRUE(half_open.is_called());
  std::array<sock_filter, 4> first_packets_only = {{
      {BPF_LD | BPF_B | BPF_ABS, 0, 0, 13},  // the flags of TCP
      {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0x02},
      {BPF_RET | BPF_K, 0, 0, 0x40000},
      {BPF_RET | BPF_K, 0, 0, 0},
  }};
  const sock_fprog program = {first_packets_only.size(), first_packets_only.data()};
  ASSERT_EQ(::setsockopt(half_open.listener().socket.get(), SOL_SOCKET, SO_ATTACH_FILTER, &program,
                         sizeof program),
            0);
  half_open.cut_off();
  half_open.expect_that_it_takes_nobody_for_lost(300);
}

// With the same key, as a rank that has several of them.
TEST(PathWatch, does_not_take_what_was_said_to_another) {
  const Key key = random_key();
  SocketListener one = open_listener(loopback());
  SocketListener other = open_listener(loopback());
  const SocketAddress other_place = other.address;
  const std::vector<std::optional<SocketAddress>> places = {std::nullopt, one.address};
  PathWatch caller(0, key, open_listener(loopback()), places, 1, [](int) { return false; });
  PathWatch called(1, key, std::move(other), places, 1, [](int) { return false; });
  caller.watch(1);
  const UnsharedFd call = accept_next(one.socket.get());
  std::array<std::byte, 256> said;
  const Transfer heard = try_receive(call.get(), said);
  ASSERT_EQ(heard.state, Transfer::State::kMoved);
  const std::uint64_t refused = count_of_refusals(Refused::kWatch);
  const Wait wait = {Deadline::after_ms(1000), nullptr};
  const UnsharedFd replay = connect_once(other_place, wait).fd;
  try_send(replay.get(), ByteView(said).first(heard.bytes));
  called.check();
  EXPECT_EQ(count_of_refusals(Refused::kWatch), refused + 1);
  EXPECT_FALSE(is_open(replay));
}

// Another host may have the same address.
TEST(PathWatch, takes_for_lost_of_whom_nothing_comes_where_it_is_refused) {
  Pair pair;
  pair.ranks[1].reset();
  pair.ranks[0]->watch(1);
  try {
    pair.look();
    ADD_FAILURE() << "it waits for ever";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(pair.places[1]->text()), std::string::npos)
        << error.what();
  }
}

TEST(PathWatch, takes_nobody_for_lost_who_has_gone_or_whose_network_goes_without_it) {
  Pair pair;
  pair.ranks[0]->watch(1);
  pair.look(500ms);
  pair.ranks[1].reset();
  EXPECT_NO_THROW(pair.look());
  Pair another;
  another.has_come = true;
  another.ranks[1].reset();
  another.ranks[0]->watch(1);
  EXPECT_NO_THROW(another.look());
}

}  // namespace
}  // namespace catenary
