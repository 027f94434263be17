// Ranks in processes of their own that do not agree: all of them end, and all of them know why.
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "catenary/collectives.h"
#include "tests/support/crew.h"
#include "tests/support/rank_group.h"

namespace catenary::testing {
namespace {

using namespace std::chrono_literals;

// False: others were through, and disagreed, before this rank was, which was told so.
bool join(Seat& seat, const ncclUniqueId& id, const std::vector<std::string>& said,
          ncclConfig_t config = NCCL_CONFIG_INITIALIZER) {
  ncclResult_t joined = ncclCommInitRankConfig(&seat.comm, seat.nranks, id, seat.rank, &config);
  if (joined == ncclInProgress) joined = wait_while_in_progress(seat.comm, 15s);
  if (joined != ncclInvalidUsage || said.empty()) {
    require_success(joined, "ncclCommInitRank");
    return true;
  }
  const std::string told = ncclGetLastError(seat.comm);
  for (const std::string& part : said) require(contains(told, part), told);
  return false;
}

// `call` for each rank, which then asks until it is told.
void expect_disagreement(int nranks, const std::function<ncclResult_t(const Seat&, float*)>& call,
                         const std::vector<std::string>& said) {
  const auto failures = run_ranks({nranks, 1}, [&](int rank, int count, const ncclUniqueId& id) {
    TestStream stream;
    Seat seat{rank, count, nullptr, stream};
    if (!join(seat, id, said)) return;
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

// `call` for each rank, then `end`, to which the last rank comes late. What went wrong.
using Call = std::function<ncclResult_t(const Seat&, float*)>;
std::vector<std::string> last_words(int nranks, const Call& call, ncclResult_t expected,
                                    const std::vector<std::string>& said,
                                    ncclConfig_t config = NCCL_CONFIG_INITIALIZER) {
  return run_ranks({nranks, 1}, [&, config](int rank, int count, const ncclUniqueId& id) {
    TestStream stream;
    Seat seat{rank, count, nullptr, stream};
    if (!join(seat, id, said, config)) return;
    std::vector<float> data(1000, 1);
    const ncclResult_t called = call(seat, data.data());
    if (called != expected) require_success(called, "the call");
    if (rank == count - 1) std::this_thread::sleep_for(200ms);
    ncclResult_t end = catCommFinalize(seat.comm, 10'000);
    if (end == ncclInProgress) end = wait_while_in_progress(seat.comm, 15s);
    const std::string text = ncclGetLastError(seat.comm);
    require(end == expected, std::to_string(end) + ": " + text);
    for (const std::string& part : said) require(contains(text, part), text);
    seat.finish();
    require_success(ncclCommDestroy(seat.comm), "destroy");
  });
}

class LastDisagreement : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, LastDisagreement, ::testing::Values(2, 3, 4, 7));

// A root of a broadcast has only sent, and the others may have got what they waited for, if not
// from the root that they meant.
TEST_P(LastDisagreement, is_told_to_all) {
  for (int odd = 0; odd < GetParam(); ++odd) {
    const auto failures = last_words(
        GetParam(),
        [odd](const Seat& seat, float* data) {
          const int root = seat.rank == odd ? odd : (odd + 1) % seat.nranks;
          return ncclBroadcast(data, data, 100, ncclFloat32, root, seat.comm, seat.stream);
        },
        ncclInvalidUsage, {"has issued Broadcast number 0", "root " + std::to_string(odd)});
    for (const std::string& failure : failures) ADD_FAILURE() << "odd: " << odd << ", " << failure;
  }
}

TEST_P(LastDisagreement, of_who_stops_too_early_is_told_to_all) {
  const auto failures = last_words(
      GetParam(),
      [](const Seat& seat, float* data) {
        if (seat.rank == seat.nranks - 1) return ncclSuccess;
        return ncclBroadcast(data, data, 100, ncclFloat32, 0, seat.comm, seat.stream);
      },
      ncclInvalidUsage, {"Broadcast number 0 (count 100, float, root 0)", "after 0 collectives"});
  for (const std::string& failure : failures) ADD_FAILURE() << failure;
}

// Others than who ends ask for the communicator's state meanwhile.
TEST_P(LastDisagreement, is_told_to_all_whose_communicators_do_not_block) {
  const auto failures = last_words(
      GetParam(),
      [](const Seat& seat, float* data) {
        return ncclBroadcast(data, data, 100, ncclFloat32, seat.rank, seat.comm, seat.stream);
      },
      ncclInvalidUsage, {"has issued Broadcast number 0"}, non_blocking());
  for (const std::string& failure : failures) ADD_FAILURE() << failure;
}

TEST_P(LastDisagreement, is_none_if_all_agree) {
  const auto failures =
      last_words(GetParam(),
                 [](const Seat& seat, float* data) {
                   return ncclBroadcast(data, data, 100, ncclFloat32, 0, seat.comm, seat.stream);
                 },
                 ncclSuccess, {});
  for (const std::string& failure : failures) ADD_FAILURE() << failure;
}

// Those who wait at the end are held up neither by who has left without a word for it, nor for ever
// by who is late.
TEST(End, waits_for_nobody_who_has_left_and_for_others_as_long_as_it_is_told) {
  const auto failures = run_ranks({3, 1}, [&](int rank, int count, const ncclUniqueId& id) {
    TestStream stream;
    Seat seat{rank, count, nullptr, stream};
    require_success(ncclCommInitRank(&seat.comm, count, id, rank), "ncclCommInitRank");
    const auto began = std::chrono::steady_clock::now();
    if (rank == 0) require_success(catCommFinalize(seat.comm, 100), "an end without the others");
    if (rank == 2) std::this_thread::sleep_for(1s);
    if (rank == 1) require_success(catCommFinalize(seat.comm, 60'000), "an end with who leaves");
    const auto took = std::chrono::steady_clock::now() - began;
    require(took < 30s, "it waited for who had left");
    if (rank == 0) require(took >= 100ms, "it had no patience");
    if (rank == 1) require(took >= 500ms, "it did not wait for who was late");
    seat.finish();
    require_success(ncclCommDestroy(seat.comm), "destroy");
    if (rank == 0) std::this_thread::sleep_for(3s);  // the root is in its process
  });
  for (const std::string& failure : failures) ADD_FAILURE() << failure;
}

}  // namespace
}  // namespace catenary::testing
