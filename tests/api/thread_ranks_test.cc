// The matrix with ranks as threads of one process: loopback links, and TSan can see everything.
#include <gtest/gtest.h>

#include "catenary/device.h"
#include "tests/api/collective_cases.h"
#include "tests/support/rank_group.h"

namespace catenary::testing {
namespace {

// Around the cache line, what lies in the head of a slot (640 and 1024 bytes with an opening, of
// four-byte elements 160 and 256; 1080 without), the slot of the default links, and a few primes.
const std::vector<std::size_t> kCounts = {0,   1,   2,   7,    31,   64,   80,  160,
                                          256, 257, 641, 1024, 1025, 1081, 4099};
const std::vector<std::size_t> kLongCounts = {65535, 65537};

class ThreadRanks : public ::testing::TestWithParam<int> {
 protected:
  void run(const std::function<void(int, int, ncclComm_t)>& body) {
    const auto failures =
        run_ranks({1, GetParam()}, [&](int rank, int nranks, const ncclUniqueId& id) {
          require(catSetDevice(rank) == catSuccess, "catSetDevice");
          ncclComm_t comm = nullptr;
          require_success(ncclCommInitRank(&comm, nranks, id, rank), "ncclCommInitRank");
          body(rank, nranks, comm);
          require_success(ncclCommDestroy(comm), "ncclCommDestroy");
        });
    for (const std::string& failure : failures) ADD_FAILURE() << failure;
  }
};

TEST_P(ThreadRanks, all_reduce_is_exact_for_every_type_and_operation) {
  run([](int rank, int nranks, ncclComm_t comm) { check_all_reduce(rank, nranks, comm, kCounts); });
}

TEST_P(ThreadRanks, all_reduce_is_exact_for_long_buffers) {
  run([](int rank, int nranks, ncclComm_t comm) {
    check_all_reduce(rank, nranks, comm, kLongCounts);
  });
}

TEST_P(ThreadRanks, other_collectives_are_exact) {
  run([](int rank, int nranks, ncclComm_t comm) {
    check_other_collectives(rank, nranks, comm, kCounts);
  });
}

TEST_P(ThreadRanks, averages_and_scaled_sums_are_exact) {
  run([](int rank, int nranks, ncclComm_t comm) {
    check_scaled_reductions(rank, nranks, comm, {0, 1, 31, 1025});
  });
}

TEST_P(ThreadRanks, a_ring_of_sends_and_receives_is_exact) {
  run([](int rank, int nranks, ncclComm_t comm) { check_send_recv(rank, nranks, comm, kCounts); });
}

INSTANTIATE_TEST_SUITE_P(Ranks, ThreadRanks, ::testing::Values(1, 2, 3, 4, 5, 6, 8),
                         [](const auto& param) { return std::to_string(param.param); });

}  // namespace
}  // namespace catenary::testing
