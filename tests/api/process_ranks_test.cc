// The matrix with ranks as processes, and as processes of several threads: shared memory and
// loopback together. The parent never touches the library, so that its children may.
#include <gtest/gtest.h>

#include "catenary/device.h"
#include "tests/api/collective_cases.h"
#include "tests/support/rank_group.h"

namespace catenary::testing {
namespace {

const std::vector<std::size_t> kCounts = {1, 7, 80, 160, 256, 257, 641, 1025, 4099, 65537};

class ProcessRanks : public ::testing::TestWithParam<Shape> {
 protected:
  void run(const std::function<void(int, int, ncclComm_t)>& body) {
    const int threads = GetParam().threads;
    const auto failures = run_ranks(GetParam(), [&](int rank, int nranks, const ncclUniqueId& id) {
      require(catSetDevice(rank % threads) == catSuccess, "catSetDevice");
      ncclComm_t comm = nullptr;
      require_success(ncclCommInitRank(&comm, nranks, id, rank), "ncclCommInitRank");
      body(rank, nranks, comm);
      require_success(ncclCommDestroy(comm), "ncclCommDestroy");
    });
    for (const std::string& failure : failures) ADD_FAILURE() << failure;
  }
};

TEST_P(ProcessRanks, all_reduce_is_exact_for_every_type_and_operation) {
  run([](int rank, int nranks, ncclComm_t comm) { check_all_reduce(rank, nranks, comm, kCounts); });
}

TEST_P(ProcessRanks, other_collectives_are_exact) {
  run([](int rank, int nranks, ncclComm_t comm) {
    check_other_collectives(rank, nranks, comm, kCounts);
  });
}

TEST_P(ProcessRanks, a_ring_of_sends_and_receives_is_exact) {
  run([](int rank, int nranks, ncclComm_t comm) { check_send_recv(rank, nranks, comm, kCounts); });
}

INSTANTIATE_TEST_SUITE_P(Shapes, ProcessRanks,
                         ::testing::Values(Shape{2, 1}, Shape{3, 1}, Shape{2, 2}),
                         [](const auto& param) {
                           return std::to_string(param.param.processes) + "x" +
                                  std::to_string(param.param.threads);
                         });

}  // namespace
}  // namespace catenary::testing
