// The watch of ways to other hosts, as far as one host can show it; tests/hosts takes ways away.
#include "src/transport/path_watch.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <thread>

#include "src/base/config.h"
#include "src/bootstrap/tcp.h"

namespace catenary {
namespace {

using namespace std::chrono_literals;

Config loopback() {
  Config config;
  config.socket_ifname = "=lo";
  return config;
}

// Two ranks, of which either may be missing or deaf.
struct Pair {
  std::vector<std::optional<SocketAddress>> places;
  std::unique_ptr<PathWatch> ranks[2];

  Pair() {
    SocketListener listeners[2] = {open_listener(loopback()), open_listener(loopback())};
    for (const SocketListener& each : listeners) places.emplace_back(each.address);
    for (int rank = 0; rank < 2; ++rank) {
      ranks[rank] = std::make_unique<PathWatch>(rank, std::move(listeners[rank]), places, 1,
                                                [](int) { return false; });
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

TEST(PathWatch, takes_nobody_for_lost_who_has_gone_or_never_listened) {
  Pair pair;
  pair.ranks[0]->watch(1);
  pair.look(500ms);
  pair.ranks[1].reset();
  EXPECT_NO_THROW(pair.look());
  Pair another;
  another.ranks[1].reset();
  another.ranks[0]->watch(1);
  EXPECT_NO_THROW(another.look());
}

}  // namespace
}  // namespace catenary
