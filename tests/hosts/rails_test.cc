// Hosts with two cards each, over both of which ranks stripe what they send.
#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <functional>
#include <thread>
#include <vector>

#include "tests/api/collective_cases.h"
#include "tests/hosts/host_ranks.h"

namespace catenary::testing {
namespace {

using namespace std::chrono_literals;

// Bytes that this host has sent over each card.
std::array<double, 2> sent_bytes() {
  std::array<double, 2> sent = {-1, -1};
  std::ifstream lines("/proc/self/net/dev");
  for (std::string name; lines >> name; lines.ignore(1000, '\n')) {
    if (name != "eth0:" && name != "eth1:") continue;
    std::uint64_t value = 0;
    for (int column = 0; column < 9; ++column) lines >> value;  // the ninth: sent
    sent[name == "eth0:" ? 0 : 1] = static_cast<double>(value);
  }
  require(sent[0] >= 0 && sent[1] >= 0, "this host lacks a card");
  return sent;
}

void sum_much(ncclComm_t comm, int times) {
  constexpr std::size_t kCount = std::size_t{1} << 20;
  TestStream stream;
  std::vector<float> values(kCount, 1);
  for (int i = 0; i < times; ++i) {
    require_success(
        ncclAllReduce(values.data(), values.data(), kCount, ncclFloat32, ncclMax, comm, stream),
        "ncclAllReduce");
  }
  stream.finish();
  require(values.front() == 1 && values.back() == 1, "the maximum");
}

// What each card sends of so much, from 0 to 1.
std::array<double, 2> shares_of(ncclComm_t comm) {
  const std::array<double, 2> before = sent_bytes();
  sum_much(comm, 8);
  std::array<double, 2> after = sent_bytes();
  for (int card : {0, 1}) after[card] -= before[card];
  const double all = after[0] + after[1];
  require(all > 8 * 4e6, "less was sent than there was to send");
  return {after[0] / all, after[1] / all};
}

void settle_on_cards(const Hosts& hosts, const HostShape& shape, int rank) {
  settle_on(hosts, shape, rank);
  ::setenv("NCCL_SOCKET_IFNAME", "eth", 1);
}

void run_on(const Hosts& hosts, const HostShape& shape,
            const std::function<void(int rank, Board& board)>& body) {
  Processes ranks(shape.ranks(), [&](int rank, Board& board) {
    settle_on_cards(hosts, shape, rank);
    body(rank, board);
  });
  for (const std::string& failure : ranks.join(60s)) ADD_FAILURE() << failure;
}

TEST(HostRails, carry_a_half_each) {
  const HostShape shape = {2, 1};
  const Hosts hosts(shape.hosts, 0, 2);
  run_on(hosts, shape, [&](int rank, Board& board) {
    ::setenv("CATENARY_RAILS", "2", 1);
    ncclComm_t comm = join(rank, shape.ranks(), board);
    const std::array<double, 2> shares = shares_of(comm);
    for (const double share : shares) {
      require(share > 0.3, "a card sent a share of " + std::to_string(share));
    }
    check_all_reduce(rank, shape.ranks(), comm, {1, 257, 65537});
    check_other_collectives(rank, shape.ranks(), comm, {1, 4099});
    check_send_recv(rank, shape.ranks(), comm, {1, 65537});
    require_success(ncclCommDestroy(comm), "ncclCommDestroy");
  });
}

TEST(HostRails, are_one_unless_more_are_asked_for) {
  const HostShape shape = {2, 1};
  const Hosts hosts(shape.hosts, 0, 2);
  run_on(hosts, shape, [&](int rank, Board& board) {
    ncclComm_t comm = join(rank, shape.ranks(), board);
    const std::array<double, 2> shares = shares_of(comm);
    require(shares[1] < 0.01, "the second card sent a share of " + std::to_string(shares[1]));
    require_success(ncclCommDestroy(comm), "ncclCommDestroy");
  });
}

// More rails than cards, and fewer than the peer has.
TEST(HostRails, may_be_another_number_at_each_rank) {
  const HostShape shape = {3, 2};
  const Hosts hosts(shape.hosts, 0, 2);
  run_on(hosts, shape, [&](int rank, Board& board) {
    ::setenv("CATENARY_RAILS", std::to_string(1 + rank % 4).c_str(), 1);
    ncclComm_t comm = join(rank, shape.ranks(), board);
    check_all_reduce(rank, shape.ranks(), comm, {1, 65537});
    check_send_recv(rank, shape.ranks(), comm, {1, 65537});
    require_success(ncclCommDestroy(comm), "ncclCommDestroy");
  });
}

constexpr int kReady = 1;

// Two hosts that lose their second card, over which each sends a half. The first still carries the
// control plane, and all that is short.
class HalfUnplugged {
 public:
  // Each rank's `body` begins with a communicator, works until something fails and returns that.
  explicit HalfUnplugged(std::function<ncclResult_t(int rank, Board& board, ncclComm_t comm)> body)
      : hosts_(kShape.hosts, 0, 2), ranks_(kShape.ranks(), [this, body](int rank, Board& board) {
          settle_on_cards(hosts_, kShape, rank);
          ::setenv("CATENARY_RAILS", "2", 1);
          ::setenv("CATENARY_PEER_TIMEOUT", "1", 1);
          ncclComm_t comm = join(rank, kShape.ranks(), board);
          const ncclResult_t state = body(rank, board, comm);
          board.posts[rank].numbers[0] = ms_since(board.event_ns);
          require_result(state, ncclRemoteError, "the failure");
          require_success(ncclCommAbort(comm), "ncclCommAbort");
        }) {}

  void unplug() {
    ranks_.board().event_ns = monotonic_ns();
    hosts_.set_link(1, false, 1);
  }
  void expect_that_all_know(double within_ms) {
    for (const std::string& failure : ranks_.join(30s)) ADD_FAILURE() << failure;
    for (int rank = 0; rank < kShape.ranks(); ++rank) {
      EXPECT_LT(ranks_.board().posts[rank].numbers[0], within_ms) << "rank " << rank;
    }
  }
  Processes& ranks() { return ranks_; }

 private:
  static constexpr HostShape kShape = {2, 1};
  const Hosts hosts_;
  Processes ranks_;
};

// All-reduces until one fails.
ncclResult_t work_until_failure(int rank, Board& board, ncclComm_t comm) {
  ncclResult_t state = ncclSuccess;
  TestStream stream;
  std::vector<float> values(1 << 20, 1);
  while (state == ncclSuccess) {
    state = ncclAllReduce(values.data(), values.data(), values.size(), ncclFloat32, ncclMax, comm,
                          stream);
    if (state == ncclSuccess) stream.finish();
    if (state == ncclSuccess) ncclCommGetAsyncError(comm, &state);
    board.posts[rank].stage = kReady;
  }
  return state;
}

TEST(HostRails, of_which_one_is_unplugged_are_an_error_on_all) {
  HalfUnplugged hosts(work_until_failure);
  ASSERT_TRUE(hosts.ranks().wait_for_stage(kReady, 20s));
  hosts.unplug();
  hosts.expect_that_all_know(6000);
}

// The other rank has not looked yet who came to watch the way, and has no way to watch any more.
TEST(HostRails, of_which_one_is_unplugged_before_a_rank_comes_are_an_error_on_all) {
  HalfUnplugged hosts([](int rank, Board& board, ncclComm_t comm) {
    board.posts[rank].stage = kReady;
    while (rank == 1 && board.event_ns == 0) std::this_thread::sleep_for(10ms);
    if (rank == 1) std::this_thread::sleep_for(500ms);
    return work_until_failure(rank, board, comm);
  });
  ASSERT_TRUE(hosts.ranks().wait_for_stage(kReady, 20s));
  std::this_thread::sleep_for(500ms);
  hosts.unplug();
  hosts.expect_that_all_know(8000);
}

}  // namespace
}  // namespace catenary::testing
