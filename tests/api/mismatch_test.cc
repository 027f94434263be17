// Ranks that do not agree: instead of hanging or mixing bytes up, every rank gets an error that
// names ranks and what they run.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/crew.h"
#include "tests/support/rank_group.h"

namespace catenary::testing {
namespace {

using namespace std::chrono_literals;

struct Mismatch {
  const char* name;
  int nranks;
  std::function<ncclResult_t(Seat&, float*)> call;
  std::vector<std::string> said;  // what the message must hold, beside "rank"
};

void PrintTo(const Mismatch& test, std::ostream* out) { *out << test.name; }

// Every rank calls; every rank must hear of it, its stream must end, and later calls be refused.
void check_mismatch(const Mismatch& test) {
  run_crew(test.nranks, [&](Seat& seat) {
    std::vector<float> data(1 << 16, 1);
    const ncclResult_t called = test.call(seat, data.data());
    require(called == ncclSuccess || called == ncclInvalidUsage || called == ncclRemoteError,
            "the call itself");
    const ncclResult_t failure = wait_for_failure(seat.comm, 15s);
    require(failure == ncclInvalidUsage || failure == ncclRemoteError,
            "result " + std::to_string(failure));
    seat.finish();
    require(ncclBcast(data.data(), 1, ncclFloat32, 0, seat.comm, seat.stream) == failure,
            "a later call");
    const std::string text = last_error();
    for (const std::string& part : test.said)
      require(contains(text, part), text + "\nlacks: " + part);
    require(contains(text, "rank ") && contains(text, "do not agree"), text);
    require_success(ncclCommAbort(seat.comm), "abort");
    seat.comm = nullptr;
  });
}

std::vector<Mismatch> in_collectives() {
  const auto all_reduce = [](Seat& seat, float* data, std::size_t count, ncclDataType_t type,
                             ncclRedOp_t op) {
    return ncclAllReduce(data, data, count, type, op, seat.comm, seat.stream);
  };
  return {
      {"kind",
       3,
       [=](Seat& seat, float* data) {
         if (seat.rank != 1) return all_reduce(seat, data, 100, ncclFloat32, ncclSum);
         return ncclAllGather(data, data, 100, ncclFloat32, seat.comm, seat.stream);
       },
       {"AllReduce", "AllGather", "rank 1"}},
      {"kind_with_a_root",
       2,
       [=](Seat& seat, float* data) {
         if (seat.rank == 0) return all_reduce(seat, data, 100, ncclFloat32, ncclSum);
         return ncclBroadcast(data, data, 100, ncclFloat32, 0, seat.comm, seat.stream);
       },
       {"AllReduce", "Broadcast", "rank 0", "rank 1"}},
      {"small_count",
       3,
       [=](Seat& seat, float* data) {
         return all_reduce(seat, data, seat.rank == 2 ? 99 : 100, ncclFloat32, ncclSum);
       },
       {"count 99", "count 100", "rank 2"}},
      {"large_count",
       3,
       [=](Seat& seat, float* data) {
         return all_reduce(seat, data, seat.rank == 0 ? 5 : 65536, ncclFloat32, ncclSum);
       },
       {"count 5,", "count 65536", "rank 0"}},
      {"type",
       3,
       [=](Seat& seat, float* data) {
         return all_reduce(seat, data, 64, seat.rank == 0 ? ncclInt32 : ncclFloat32, ncclSum);
       },
       {"int32", "float", "rank 0"}},
      {"operation",
       3,
       [=](Seat& seat, float* data) {
         return all_reduce(seat, data, 64, ncclFloat32, seat.rank == 0 ? ncclMax : ncclSum);
       },
       {"max", "sum", "rank 0"}},
      {"root_of_a_broadcast",
       3,
       [=](Seat& seat, float* data) {
         return ncclBroadcast(data, data, 64, ncclFloat32, seat.rank == 2 ? 1 : 0, seat.comm,
                              seat.stream);
       },
       {"root 0", "root 1", "rank 2"}},
      {"order",
       2,
       [=](Seat& seat, float* data) {
         const auto first = [&] { return all_reduce(seat, data, 64, ncclFloat32, ncclSum); };
         const auto second = [&] {
           return ncclReduceScatter(data + 64, data + 128, 32, ncclFloat32, ncclSum, seat.comm,
                                    seat.stream);
         };
         const ncclResult_t one = seat.rank == 0 ? first() : second();
         return one != ncclSuccess ? one : seat.rank == 0 ? second() : first();
       },
       {"AllReduce", "ReduceScatter"}},
  };
}

struct Sent {
  std::size_t count;
  ncclDataType_t type;
};

// Rank 0 sends one thing, rank 1 expects another.
Mismatch message(const char* name, Sent sent, Sent expected, std::vector<std::string> said) {
  const auto call = [=](Seat& seat, float* data) {
    if (seat.rank == 0) return ncclSend(data, sent.count, sent.type, 1, seat.comm, seat.stream);
    return ncclRecv(data, expected.count, expected.type, 0, seat.comm, seat.stream);
  };
  return {name, 2, call, std::move(said)};
}

std::vector<Mismatch> in_messages() {
  return {
      message("count", {10, ncclFloat32}, {11, ncclFloat32},
              {"Send", "Recv", "count 10,", "count 11,", "rank 0", "rank 1"}),
      message("long_count", {65536, ncclFloat32}, {3, ncclFloat32}, {"count 65536,", "count 3,"}),
      message("no_count", {0, ncclFloat32}, {3, ncclFloat32}, {"count 0,", "count 3,"}),
      message("type", {10, ncclInt32}, {10, ncclFloat32}, {"int32", "float"}),
  };
}

class Disagreement : public ::testing::TestWithParam<Mismatch> {};

TEST_P(Disagreement, is_an_error_on_every_rank) { check_mismatch(GetParam()); }

std::string name_of(const ::testing::TestParamInfo<Mismatch>& test) { return test.param.name; }

INSTANTIATE_TEST_SUITE_P(InCollectives, Disagreement, ::testing::ValuesIn(in_collectives()),
                         name_of);
INSTANTIATE_TEST_SUITE_P(InMessages, Disagreement, ::testing::ValuesIn(in_messages()), name_of);

// The roots send and do not listen, so this cannot be known before the ranks meet again.
TEST(DisagreementLater, about_two_roots_that_only_send_is_found_by_the_next_operation) {
  check_mismatch(
      {"",
       2,
       [](Seat& seat, float* data) {
         const ncclResult_t first =
             ncclBroadcast(data, data, 64, ncclFloat32, seat.rank, seat.comm, seat.stream);
         if (first != ncclSuccess) return first;
         return ncclAllReduce(data, data, 64, ncclFloat32, ncclSum, seat.comm, seat.stream);
       },
       {"Broadcast", "AllReduce"}});
}

}  // namespace
}  // namespace catenary::testing
