// What goes wrong between hosts: a rank dies, a host is unplugged, an operation is aborted while it
// waits for the network. The others hear which rank it was, soon, and nothing hangs.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/hosts/host_ranks.h"

namespace catenary::testing {
namespace {

using namespace std::chrono_literals;

enum Stage : int { kReady = 1, kSent = 2, kOver = 3 };

constexpr HostShape kShape = {3, 1};
constexpr int kVictim = 2;
constexpr double kNoticed_ms = 1500;      // of a process whose connections the kernel closes
constexpr double kUnplugged_ms = 5000;    // of a host that says nothing, with the shortest patience
constexpr double kUnanswered_ms = 20000;  // of a host that never said anything
constexpr double kWayLost_ms = 6500;      // where a network has to be watched from beside it

// Kernels ask each other whether those of ours are there; libfabric's go without.
bool is_of_libfabric(int fd) {
  int is_kept_alive = 0;
  socklen_t bytes = sizeof is_kept_alive;
  return ::getsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &is_kept_alive, &bytes) == 0 &&
         is_kept_alive == 0;
}

// As a firewall does that has forgotten them: whoever has one to this process is told at once.
void reset_connections(bool only_libfabrics = false) {
  for (int fd = 3; fd < 1024; ++fd) {
    sockaddr_storage peer = {};
    socklen_t bytes = sizeof peer;
    if (::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &bytes) != 0) continue;
    if (peer.ss_family != AF_INET || (only_libfabrics && !is_of_libfabric(fd))) continue;
    sockaddr nobody = {};
    nobody.sa_family = AF_UNSPEC;
    require(::connect(fd, &nobody, sizeof nobody) == 0, "reset");
  }
}

void end_with_failure(ncclComm_t comm, ncclResult_t state, Board& board, Post& post) {
  post.numbers[0] = ms_since(board.event_ns);
  write_text(post, last_error());
  require_result(state, ncclRemoteError, "the failure");
  require_success(ncclCommAbort(comm), "ncclCommAbort");
  post.stage = kOver;
}

// All-reduces without end, until one fails; says when and how. The victim resets its connections
// before the round `reset_in`, if there is such a round.
void work_until_failure(int rank, Board& board, const Hosts& hosts, int reset_in = -1,
                        std::size_t count = 100'000) {
  settle_on(hosts, kShape, rank);
  ncclComm_t comm = join(rank, kShape.ranks(), board);
  TestStream stream;
  std::vector<float> data(count, 1);
  ncclResult_t state = ncclSuccess;
  for (int i = 0; state == ncclSuccess; ++i) {
    if (i == reset_in && rank == kVictim) {
      board.event_ns = monotonic_ns();
      reset_connections();
    }
    state =
        ncclAllReduce(data.data(), data.data(), data.size(), ncclFloat32, ncclMax, comm, stream);
    if (state == ncclSuccess) stream.finish();
    if (state == ncclSuccess) ncclCommGetAsyncError(comm, &state);
    if (i == 10) board.posts[rank].stage = kReady;
  }
  end_with_failure(comm, state, board, board.posts[rank]);
}

// Every rank but one, if one need not know, names all of these.
void expect_that_all_know(Processes& ranks, const std::vector<int>& named, double within_ms,
                          int but = -1, int killed = -1) {
  for (const std::string& failure : ranks.join(30s, killed)) ADD_FAILURE() << failure;
  for (int rank = 0; rank < kShape.ranks(); ++rank) {
    if (rank == but) continue;
    const Post& post = ranks.board().posts[rank];
    EXPECT_EQ(post.stage, kOver) << "rank " << rank;
    EXPECT_LT(post.numbers[0], within_ms) << "rank " << rank << " heard late";
    for (const int name : named)
      EXPECT_TRUE(contains(post.text, "rank " + std::to_string(name))) << post.text;
  }
}

TEST(HostFaults, a_killed_rank_is_named_on_all_other_hosts) {
  const Hosts hosts(kShape.hosts);
  Processes ranks(kShape.ranks(),
                  [&](int rank, Board& board) { work_until_failure(rank, board, hosts); });
  ASSERT_TRUE(ranks.wait_for_stage(kReady, 20s));
  ranks.board().event_ns = monotonic_ns();
  ranks.signal(kVictim, SIGKILL);
  expect_that_all_know(ranks, {kVictim}, kNoticed_ms, kVictim, kVictim);
}

TEST(HostFaults, a_rank_whose_connections_are_reset_is_named_on_all_other_hosts) {
  const Hosts hosts(kShape.hosts);
  Processes ranks(kShape.ranks(),
                  [&](int rank, Board& board) { work_until_failure(rank, board, hosts, 30); });
  expect_that_all_know(ranks, {kVictim}, kNoticed_ms, kVictim);
}

// All ranks live, the control plane reaches them all, and libfabric connects anew by itself. Of
// long messages it knows that they broke off; short ones that it was done with are missed.
TEST(FabricConnections, that_are_reset_are_an_error_on_all) {
  for (const std::size_t count : {1, 100'000}) {
    const Hosts hosts(kShape.hosts);
    Processes ranks(kShape.ranks(), [&](int rank, Board& board) {
      ::setenv("CATENARY_PEER_TIMEOUT", "1", 1);
      std::jthread firewall([&, rank](const std::stop_token& stop) {
        while (board.event_ns == 0 && !stop.stop_requested()) std::this_thread::sleep_for(1ms);
        while (rank == kVictim && !stop.stop_requested()) {
          reset_connections(true);
          std::this_thread::sleep_for(100ms);
        }
      });
      work_until_failure(rank, board, hosts, -1, count);
    });
    ASSERT_TRUE(ranks.wait_for_stage(kReady, 20s));
    ranks.board().event_ns = monotonic_ns();
    expect_that_all_know(ranks, {kVictim}, kWayLost_ms, kVictim);
  }
}

// Rank 1's message is in its kernel, which has not got it through when the connection goes. The
// sender was done with it, libfabric connects anew when there is more to say, and rank 2 waits for
// what nobody has any more.
TEST(FabricConnections, that_are_reset_with_something_on_the_way_are_an_error_on_all) {
  const Hosts hosts(kShape.hosts);
  Processes ranks(kShape.ranks(), [&](int rank, Board& board) {
    ::setenv("CATENARY_PEER_TIMEOUT", "3", 1);
    settle_on(hosts, kShape, rank);
    ncclComm_t comm = join(rank, kShape.ranks(), board);
    TestStream stream;
    float value = 1;
    for (int i = 0; i < 2; ++i) {  // both ways, so that nothing is left to be connected
      if (rank == 1 + i) ncclSend(&value, 1, ncclFloat32, 2 - i, comm, stream);
      if (rank == 2 - i) ncclRecv(&value, 1, ncclFloat32, 1 + i, comm, stream);
    }
    stream.finish();
    board.posts[rank].stage = kReady;
    board.wait_for_go();
    if (rank == 1) {
      ncclSend(&value, 1, ncclFloat32, 2, comm, stream);
      stream.finish();
      reset_connections(true);
    }
    board.posts[rank].stage = kSent;
    if (rank != 0) ncclRecv(&value, 1, ncclFloat32, 3 - rank, comm, stream);
    end_with_failure(comm, wait_for_failure(comm, 20s), board, board.posts[rank]);
  });
  ASSERT_TRUE(ranks.wait_for_stage(kReady, 20s));
  hosts.lose_path(1, 2);
  ranks.board().event_ns = monotonic_ns();
  ranks.board().go = true;
  ASSERT_TRUE(ranks.wait_for_stage(kSent, 5s));
  hosts.find_path(1, 2);
  expect_that_all_know(ranks, {1, 2}, 2 * kWayLost_ms);
}

// Host 0 is the one at which all ranks meet.
TEST(HostFaults, an_unplugged_host_is_named_on_all_others_within_the_time_that_was_set) {
  for (const int victim : {kVictim, 0}) {
    const Hosts hosts(kShape.hosts);
    Processes ranks(kShape.ranks(), [&](int rank, Board& board) {
      ::setenv("CATENARY_PEER_TIMEOUT", "1", 1);
      work_until_failure(rank, board, hosts);
    });
    ASSERT_TRUE(ranks.wait_for_stage(kReady, 20s));
    ranks.board().event_ns = monotonic_ns();
    hosts.set_link(victim, false);
    expect_that_all_know(ranks, {victim}, kUnplugged_ms, victim);
  }
}

// Rank 2 loses host 0 and gives up. Rank 1, which waits for rank 2 and has patience with hosts that
// say nothing, sees no more than that, and asks the root in vain. (Libfabric would not tell it.)
TEST(SocketConnections, that_close_since_a_third_host_is_gone_are_an_error_that_names_it) {
  const Hosts hosts(kShape.hosts);
  Processes ranks(kShape.ranks(), [&](int rank, Board& board) {
    ::setenv("CATENARY_PEER_TIMEOUT", rank == 1 ? "20" : "1", 1);
    settle_on(hosts, kShape, rank);
    ncclComm_t comm = join(rank, kShape.ranks(), board);
    TestStream stream;
    float value = 1;
    const int next = rank == 0 ? 2 : 1;  // 0 to 2 to 1
    const auto receive = [&] {
      if (rank > 0) ncclRecv(&value, 1, ncclFloat32, rank == 2 ? 0 : 2, comm, stream);
    };
    receive();
    if (rank != 1) ncclSend(&value, 1, ncclFloat32, next, comm, stream);
    stream.finish();
    receive();
    board.posts[rank].stage = kReady;
    end_with_failure(comm, wait_for_failure(comm, 20s), board, board.posts[rank]);
  });
  ASSERT_TRUE(ranks.wait_for_stage(kReady, 20s));
  ranks.board().event_ns = monotonic_ns();
  hosts.set_link(0, false);
  expect_that_all_know(ranks, {0}, kWayLost_ms, 0);
}

// Both still reach host 0, so that the control plane sees nothing wrong with either.
TEST(HostPaths, that_are_lost_between_two_hosts_are_an_error_on_all) {
  const Hosts hosts(kShape.hosts);
  Processes ranks(kShape.ranks(), [&](int rank, Board& board) {
    ::setenv("CATENARY_PEER_TIMEOUT", "1", 1);
    work_until_failure(rank, board, hosts);
  });
  ASSERT_TRUE(ranks.wait_for_stage(kReady, 20s));
  ranks.board().event_ns = monotonic_ns();
  hosts.lose_path(1, 2);
  expect_that_all_know(ranks, {1, 2}, kWayLost_ms);
}

// The messages of both share a stream, and the kernel does not probe one with bytes on the way.
TEST(HostPaths, that_are_lost_while_short_messages_go_to_and_fro_are_an_error_on_both) {
  const Hosts hosts(kShape.hosts);
  Processes ranks(kShape.ranks(), [&](int rank, Board& board) {
    ::setenv("CATENARY_PEER_TIMEOUT", "1", 1);
    settle_on(hosts, kShape, rank);
    ncclComm_t comm = join(rank, kShape.ranks(), board);
    TestStream stream;
    float value = 1;
    ncclResult_t state = ncclSuccess;
    for (int i = rank; rank != 0 && state == ncclSuccess; ++i) {
      const int peer = 3 - rank;
      state = i % 2 == 1 ? ncclSend(&value, 1, ncclFloat32, peer, comm, stream)
                         : ncclRecv(&value, 1, ncclFloat32, peer, comm, stream);
      if (state == ncclSuccess) stream.finish();
      if (state == ncclSuccess) ncclCommGetAsyncError(comm, &state);
      if (i == 1000) board.posts[rank].stage = kReady;
    }
    if (rank == 0) {
      board.posts[rank].stage = kReady;
      state = wait_for_failure(comm, 20s);
    }
    end_with_failure(comm, state, board, board.posts[rank]);
  });
  ASSERT_TRUE(ranks.wait_for_stage(kReady, 20s));
  ranks.board().event_ns = monotonic_ns();
  hosts.lose_path(1, 2);
  expect_that_all_know(ranks, {1, 2}, kWayLost_ms);
}

// Of the host that the thread lives on.
void set_network(const char* name, int value) {
  std::ofstream file(std::string("/proc/sys/net/") + name);
  file << value << std::flush;
  require(file.good(), name);
}

// Nobody even refuses the connection: it may be that its rank is late and has a full queue.
TEST(HostPaths, that_were_never_there_are_an_error_on_all) {
  const Hosts hosts(kShape.hosts);
  hosts.lose_path(1, 2);
  Processes ranks(kShape.ranks(), [&](int rank, Board& board) {
    ::setenv("CATENARY_PEER_TIMEOUT", "1", 1);
    settle_on(hosts, kShape, rank);
    board.event_ns = monotonic_ns();
    work_until_failure(rank, board, hosts);
  });
  expect_that_all_know(ranks, {1, 2}, kUnanswered_ms);
}

// The kernel has taken the connection for a rank that is late, and before it comes the path is
// lost.
TEST(HostPaths, that_are_lost_before_the_receiver_comes_are_an_error_on_all) {
  const Hosts hosts(kShape.hosts);
  Processes ranks(kShape.ranks(), [&](int rank, Board& board) {
    ::setenv("CATENARY_PEER_TIMEOUT", "1", 1);
    settle_on(hosts, kShape, rank);
    set_network("ipv4/tcp_syn_retries", 1);
    ncclComm_t comm = join(rank, kShape.ranks(), board);
    TestStream stream;
    float value = 1;
    if (rank == 1) ncclSend(&value, 1, ncclFloat32, 2, comm, stream);
    std::this_thread::sleep_for(500ms);
    board.posts[rank].stage = kReady;
    board.wait_for_go();
    if (rank == 2) ncclRecv(&value, 1, ncclFloat32, 1, comm, stream);
    require_result(wait_for_failure(comm, 10s), ncclRemoteError, "the failure");
    require_success(ncclCommAbort(comm), "ncclCommAbort");
  });
  ASSERT_TRUE(ranks.wait_for_stage(kReady, 20s));
  hosts.lose_path(1, 2);
  ranks.board().go = true;
  for (const std::string& failure : ranks.join(30s)) ADD_FAILURE() << failure;
}

void sum_all(std::vector<float>& data, ncclComm_t comm, TestStream& stream) {
  require_success(
      ncclAllReduce(data.data(), data.data(), data.size(), ncclFloat32, ncclSum, comm, stream),
      "sum");
  stream.finish();
}

// Ready after a first sum; a second one once the test has done what it does meanwhile.
void sum_before_and_after(int rank, Board& board, const Hosts& hosts, std::size_t count) {
  settle_on(hosts, kShape, rank);
  ncclComm_t comm = join(rank, kShape.ranks(), board);
  TestStream stream;
  std::vector<float> data(count, 1);
  for (int i = 0; i < 2; ++i) {
    sum_all(data, comm, stream);
    board.posts[rank].stage = kReady;
    if (i == 0) board.wait_for_go();
  }
  require(data == std::vector<float>(count, 9), "the sum of sums");
  require_success(ncclCommDestroy(comm), "ncclCommDestroy");
}

// Longer than the patience, but nobody had anything to say.
TEST(IdlePaths, that_are_lost_and_come_back_harm_nothing) {
  const Hosts hosts(kShape.hosts);
  Processes ranks(kShape.ranks(), [&](int rank, Board& board) {
    ::setenv("CATENARY_PEER_TIMEOUT", "1", 1);
    settle_on(hosts, kShape, rank);
    ncclComm_t comm = join(rank, kShape.ranks(), board);
    TestStream stream;
    for (int i = 0; i < 100; ++i) {
      std::vector<float> data(100'000, 1);
      sum_all(data, comm, stream);
      require(data == std::vector<float>(data.size(), static_cast<float>(kShape.ranks())),
              "the sum");
      board.posts[rank].stage = kReady;
      if (i == 0) board.wait_for_go();
      std::this_thread::sleep_for(20ms);  // the watch looks a few times a second
    }
    require_success(ncclCommDestroy(comm), "ncclCommDestroy");
  });
  ASSERT_TRUE(ranks.wait_for_stage(kReady, 20s));
  hosts.lose_path(1, 2);
  std::this_thread::sleep_for(4s);
  hosts.find_path(1, 2);
  ranks.board().go = true;
  for (const std::string& failure : ranks.join(30s)) ADD_FAILURE() << failure;
}

// For a second less than the patience: kernels ask each other once a second, and give up before
// they ask again.
TEST(IdleHosts, that_are_unplugged_for_less_than_the_patience_are_not_lost) {
  for (const int victim : {kVictim, 0}) {
    const Hosts hosts(kShape.hosts);
    Processes ranks(kShape.ranks(), [&](int rank, Board& board) {
      ::setenv("CATENARY_PEER_TIMEOUT", "3", 1);
      sum_before_and_after(rank, board, hosts, 1000);
    });
    ASSERT_TRUE(ranks.wait_for_stage(kReady, 20s));
    hosts.set_link(victim, false);
    std::this_thread::sleep_for(1900ms);
    hosts.set_link(victim, true);
    std::this_thread::sleep_for(2500ms);
    ranks.board().go = true;
    for (const std::string& failure : ranks.join(30s)) ADD_FAILURE() << failure;
  }
}

// His queue is full meanwhile, and whoever connects then gets no answer.
TEST(HostFaults, a_rank_that_accepts_nobody_for_long_is_not_lost) {
  constexpr HostShape kCrowd = {2, 4};
  constexpr int kLate = 4;
  const Hosts hosts(kCrowd.hosts);
  Processes ranks(kCrowd.ranks(), [&](int rank, Board& board) {
    ::setenv("CATENARY_PEER_TIMEOUT", "1", 1);
    settle_on(hosts, kCrowd, rank);
    set_network("core/somaxconn", rank < kLate ? 4096 : 1);
    ncclComm_t comm = join(rank, kCrowd.ranks(), board);
    TestStream stream;
    std::vector<float> values(kLate, static_cast<float>(rank));
    if (rank < kLate) ncclSend(values.data(), 1, ncclFloat32, kLate, comm, stream);
    if (rank == kLate) {
      std::this_thread::sleep_for(6s);
      for (int from = 0; from < kLate; ++from)
        ncclRecv(&values[static_cast<std::size_t>(from)], 1, ncclFloat32, from, comm, stream);
    }
    stream.finish();
    require(rank != kLate || values == std::vector<float>({0, 1, 2, 3}), "what was sent");
    float* const value = values.data();
    require_success(ncclAllReduce(value, value, 1, ncclFloat32, ncclSum, comm, stream), "all");
    stream.finish();
    require_success(ncclCommDestroy(comm), "ncclCommDestroy");
  });
  for (const std::string& failure : ranks.join(40s)) ADD_FAILURE() << failure;
}

// Whoever is stopped, or busy with something else, is late and not lost, and his kernel says so.
TEST(HostFaults, a_rank_that_takes_nothing_for_long_is_not_lost) {
  const Hosts hosts(kShape.hosts);
  Processes ranks(kShape.ranks(), [&](int rank, Board& board) {
    ::setenv("CATENARY_PEER_TIMEOUT", "1", 1);
    sum_before_and_after(rank, board, hosts, 5'000'000);  // more than kernels keep on the way
  });
  ASSERT_TRUE(ranks.wait_for_stage(kReady, 20s));
  ranks.signal(kVictim, SIGSTOP);
  ranks.board().go = true;
  std::this_thread::sleep_for(5s);
  ranks.signal(kVictim, SIGCONT);
  for (const std::string& failure : ranks.join(30s)) ADD_FAILURE() << failure;
}

TEST(HostFaults, a_link_that_comes_back_soon_harms_nothing) {
  const Hosts hosts(kShape.hosts);
  Processes ranks(kShape.ranks(), [&](int rank, Board& board) {
    settle_on(hosts, kShape, rank);
    ncclComm_t comm = join(rank, kShape.ranks(), board);
    TestStream stream;
    std::vector<float> data(100'000);
    for (int i = 0; board.posts[0].stage != kOver; ++i) {
      float more = rank == 0 && board.go ? 0 : 1;
      std::fill(data.begin(), data.end(), static_cast<float>(i % 1000 + rank));
      require_success(
          ncclAllReduce(data.data(), data.data(), data.size(), ncclFloat32, ncclMax, comm, stream),
          "max");
      require_success(ncclAllReduce(&more, &more, 1, ncclFloat32, ncclMin, comm, stream), "min");
      stream.finish();
      const std::vector<float> most(data.size(), static_cast<float>(i % 1000 + kShape.ranks() - 1));
      require(data == most, "a maximum in round " + std::to_string(i));
      if (i == 10) board.posts[rank].stage = kReady;
      if (more == 0) break;
    }
    require_success(ncclCommDestroy(comm), "ncclCommDestroy");
  });
  ASSERT_TRUE(ranks.wait_for_stage(kReady, 20s));
  hosts.set_link(kVictim, false);
  std::this_thread::sleep_for(700ms);
  hosts.set_link(kVictim, true);
  std::this_thread::sleep_for(1s);
  ranks.board().go = true;
  for (const std::string& failure : ranks.join(30s)) ADD_FAILURE() << failure;
}

TEST(HostFaults, an_abort_ends_what_waits_for_the_network) {
  const Hosts hosts(kShape.hosts);
  Processes ranks(kShape.ranks(), [&](int rank, Board& board) {
    settle_on(hosts, kShape, rank);
    ncclComm_t comm = join(rank, kShape.ranks(), board);
    TestStream stream;
    std::vector<float> data(5'000'000, 1);
    board.posts[rank].stage = kReady;
    if (rank == kVictim) std::this_thread::sleep_for(60s);  // never comes
    board.wait_for_go();
    require_success(
        ncclAllReduce(data.data(), data.data(), data.size(), ncclFloat32, ncclMax, comm, stream),
        "max");
    std::this_thread::sleep_for(300ms);
    const Stopwatch watch;
    require_success(ncclCommAbort(comm), "ncclCommAbort");
    require(watch.ms() < 1000, "the abort took " + std::to_string(watch.ms()) + " ms");
  });
  ASSERT_TRUE(ranks.wait_for_stage(kReady, 20s));
  ranks.board().go = true;
  std::this_thread::sleep_for(3s);
  ranks.signal(kVictim, SIGKILL);
  for (const std::string& failure : ranks.join(20s, kVictim)) ADD_FAILURE() << failure;
}

}  // namespace
}  // namespace catenary::testing
