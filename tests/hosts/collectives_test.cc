// Collectives between hosts: right to the bit, over the network between them and shared memory
// within. NCCL_NET says over which network.
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/api/collective_cases.h"
#include "tests/hosts/host_ranks.h"

namespace catenary::testing {
namespace {

using namespace std::chrono_literals;

const std::vector<std::size_t> kCounts = {1, 257, 65537};

std::string network() {
  const char* const net = std::getenv("NCCL_NET");
  return net != nullptr && std::string(net) == "ofi" ? "ofi" : "tcp";
}

class HostCollectives : public ::testing::TestWithParam<HostShape> {};

// What the log says of the way to each peer, which the ranks can see in no other way.
class Ways {
 public:
  explicit Ways(int rank)
      : path_("/tmp/catenary-hosts." + std::to_string(::getpid()) + "." + std::to_string(rank)) {
    ::setenv("NCCL_DEBUG", "INFO", 1);
    ::setenv("NCCL_DEBUG_SUBSYS", "INIT", 1);
    ::setenv("NCCL_DEBUG_FILE", path_.c_str(), 1);
  }
  ~Ways() { ::unlink(path_.c_str()); }

  void require_way(int from, int to, const std::string& name) const {
    std::stringstream text;
    text << std::ifstream(path_).rdbuf();
    const std::string line =
        " : " + std::to_string(from) + " -> " + std::to_string(to) + " via " + name + "\n";
    require(contains(text.str(), line), "the log lacks" + line + text.str());
  }

 private:
  std::string path_;
};

TEST_P(HostCollectives, are_exact_and_neighbours_share_memory) {
  const HostShape shape = GetParam();
  const Hosts hosts(shape.hosts);
  Processes ranks(shape.ranks(), [&](int rank, Board& board) {
    settle_on(hosts, shape, rank);
    const Ways ways(rank);
    ncclComm_t comm = join(rank, shape.ranks(), board);
    for (int peer = 0; peer < shape.ranks(); ++peer) {
      if (peer == rank) continue;
      const bool is_near = shape.host_of(peer) == shape.host_of(rank);
      ways.require_way(rank, peer, is_near ? "shm" : network());
    }
    check_all_reduce(rank, shape.ranks(), comm, kCounts);
    check_other_collectives(rank, shape.ranks(), comm, {1, 257, 4099});
    check_scaled_reductions(rank, shape.ranks(), comm, {257});
    check_send_recv(rank, shape.ranks(), comm, kCounts);
    require_success(ncclCommDestroy(comm), "ncclCommDestroy");
  });
  for (const std::string& failure : ranks.join(60s)) ADD_FAILURE() << failure;
}

INSTANTIATE_TEST_SUITE_P(Shapes, HostCollectives,
                         ::testing::Values(HostShape{2, 1}, HostShape{2, 2}, HostShape{2, 4},
                                           HostShape{3, 3}, HostShape{4, 1}, HostShape{4, 2}),
                         [](const auto& param) {
                           return std::to_string(param.param.hosts) + "x" +
                                  std::to_string(param.param.per_host);
                         });

// The longest messages are more than the buffers on the way take at once.
TEST(HostCollectives, are_exact_over_slow_links) {
  const HostShape shape = {2, 2};
  const Hosts hosts(shape.hosts, 200);
  Processes ranks(shape.ranks(), [&](int rank, Board& board) {
    settle_on(hosts, shape, rank);
    ncclComm_t comm = join(rank, shape.ranks(), board);
    check_all_reduce(rank, shape.ranks(), comm, {16411});
    check_send_recv(rank, shape.ranks(), comm, {65537});
    require_success(ncclCommDestroy(comm), "ncclCommDestroy");
  });
  for (const std::string& failure : ranks.join(60s)) ADD_FAILURE() << failure;
}

// Until all have come so far, without a word between them that the library would hear.
void wait_for_all(Board& board, int nranks, int stage) {
  const Stopwatch watch;
  for (int rank = 0; rank < nranks; ++rank) {
    while (board.posts[rank].stage < stage) {
      require(watch.ms() < 20'000, "rank " + std::to_string(rank) + " is not done with round " +
                                       std::to_string(stage));
      std::this_thread::sleep_for(1ms);
    }
  }
}

// A rank that is done has nothing more to do with it, even if the network loses what it said last.
TEST(HostCollectives, need_nobody_who_is_done) {
  constexpr int kRounds = 8;
  constexpr std::size_t kCount = 65536;
  const HostShape shape = {4, 1};
  const Hosts hosts(shape.hosts);
  Processes ranks(shape.ranks(), [&](int rank, Board& board) {
    settle_on(hosts, shape, rank);
    ncclComm_t comm = join(rank, shape.ranks(), board);
    TestStream stream;
    std::vector<int> data(kCount * static_cast<std::size_t>(shape.ranks()), rank);
    std::vector<int> result(kCount);
    for (int round = 1; round <= kRounds; ++round) {
      require_success(ncclReduceScatter(data.data(), result.data(), kCount, ncclInt32, ncclSum,
                                        comm, stream),
                      "ReduceScatter");
      stream.finish();
      require(result == std::vector<int>(kCount, 6), "the sums");
      board.posts[rank].stage = round;
      wait_for_all(board, shape.ranks(), round);
    }
    require_success(ncclCommDestroy(comm), "ncclCommDestroy");
  });
  for (const std::string& failure : ranks.join(60s)) ADD_FAILURE() << failure;
}

void check_a_sum(int rank, int nranks, ncclComm_t comm) {
  TestStream stream;
  float sum = static_cast<float>(rank + 1);
  require_success(ncclAllReduce(&sum, &sum, 1, ncclFloat32, ncclSum, comm, stream), "sum");
  stream.finish();
  require(sum == static_cast<float>(nranks * (nranks + 1) / 2), "the sum");
  require_success(ncclCommDestroy(comm), "ncclCommDestroy");
}

// As a launcher does that can only set variables.
TEST(HostLaunch, by_the_address_of_rank_0_on_an_interface_by_name) {
  const HostShape shape = {3, 1};
  const Hosts hosts(shape.hosts);
  Processes ranks(shape.ranks(), [&](int rank, Board&) {
    settle_on(hosts, shape, rank);
    ::setenv("NCCL_COMM_ID", "10.77.0.1:29500", 1);
    ::setenv("NCCL_SOCKET_IFNAME", "=eth0", 1);
    ncclUniqueId id;
    require_success(ncclGetUniqueId(&id), "ncclGetUniqueId");
    ncclComm_t comm = nullptr;
    require_success(ncclCommInitRank(&comm, 3, id, rank), "ncclCommInitRank");
    check_a_sum(rank, 3, comm);
  });
  for (const std::string& failure : ranks.join(30s)) ADD_FAILURE() << failure;
}

TEST(HostLaunch, over_the_sixth_version_of_the_internet_protocol) {
  const HostShape shape = {2, 1};
  const Hosts hosts(shape.hosts);
  Processes ranks(shape.ranks(), [&](int rank, Board& board) {
    settle_on(hosts, shape, rank);
    ::setenv("NCCL_SOCKET_FAMILY", "AF_INET6", 1);
    check_a_sum(rank, 2, join(rank, 2, board));
  });
  for (const std::string& failure : ranks.join(30s)) ADD_FAILURE() << failure;
}

}  // namespace
}  // namespace catenary::testing
