// Ranks in processes of their own that do not agree: all of them end, and all of them know why.
#include <gtest/gtest.h>

#include <vector>

#include "tests/support/crew.h"
#include "tests/support/rank_group.h"

namespace catenary::testing {
namespace {

using namespace std::chrono_literals;

// `call` for each rank, which then asks until it is told.
void expect_disagreement(int nranks, const std::function<ncclResult_t(const Seat&, float*)>& call,
                         const std::vector<std::string>& said) {
  const auto failures = run_ranks({nranks, 1}, [&](int rank, int count, const ncclUniqueId& id) {
    TestStream stream;
    Seat seat{rank, count, nullptr, stream};
    // Others may be through, and disagree, before this rank is.
    const ncclResult_t joined = ncclCommInitRank(&seat.comm, count, id, rank);
    if (joined == ncclInvalidUsage) {
      const std::string told = last_error();
      for (const std::string& part : said) require(contains(told, part), told);
      return;
    }
    require_success(joined, "ncclCommInitRank");
    std::vector<float> data(1000, 1);
    require_success(call(seat, data.data()), "the call");
    const ncclResult_t failure = wait_for_failure(seat.comm, 15s);
    const std::string text = last_error();
    require(failure == ncclInvalidUsage, std::to_string(failure) + ": " + text);
    for (const std::string& part : said) require(contains(text, part), text);
    seat.finish();
    require_success(ncclCommAbort(seat.comm), "abort");
  });
  for (const std::string& failure : failures) ADD_FAILURE() << failure;
}

ncclResult_t reduce(const Seat& seat, float* data, int root) {
  return ncclReduce(data, data + 500, 100, ncclFloat32, ncclSum, root, seat.comm, seat.stream);
}

TEST(Disagreement, about_the_root_of_a_reduction_while_both_roots_wait) {
  expect_disagreement(2,
                      [](const Seat& seat, float* data) { return reduce(seat, data, seat.rank); },
                      {"rank 0 has issued Reduce number 0 (count 100, float, sum, root 0)",
                       "rank 1 has issued Reduce number 0 (count 100, float, sum, root 1)"});
}

TEST(Disagreement, about_the_root_of_a_reduction_while_only_the_true_one_waits) {
  expect_disagreement(
      4, [](const Seat& seat, float* data) { return reduce(seat, data, seat.rank == 3 ? 1 : 0); },
      {"rank 3 has issued Reduce number 0 (count 100, float, sum, root 1)", "root 0"});
}

TEST(Disagreement, about_the_root_of_a_broadcast_while_nobody_waits) {
  expect_disagreement(2,
                      [](const Seat& seat, float* data) {
                        return ncclBroadcast(data, data, 100, ncclFloat32, seat.rank, seat.comm,
                                             seat.stream);
                      },
                      {"rank 0 has issued Broadcast number 0 (count 100, float, root 0)",
                       "rank 1 has issued Broadcast number 0 (count 100, float, root 1)"});
}

TEST(Disagreement, about_the_length_of_a_message) {
  expect_disagreement(2,
                      [](const Seat& seat, float* data) {
                        const auto count = static_cast<std::size_t>(3 + seat.rank);
                        if (seat.rank == 1)
                          return ncclRecv(data, count, ncclFloat32, 0, seat.comm, seat.stream);
                        const ncclResult_t sent =
                            ncclSend(data, count, ncclFloat32, 1, seat.comm, seat.stream);
                        if (sent != ncclSuccess) return sent;
                        return ncclRecv(data, count, ncclFloat32, 1, seat.comm, seat.stream);
                      },
                      {"rank 1 has issued Recv number 0 (count 4, float)",
                       "rank 0 has issued Send number 0 (count 3, float)"});
}

}  // namespace
}  // namespace catenary::testing
