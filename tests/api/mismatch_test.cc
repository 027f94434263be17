// Ranks that do not agree: instead of hanging or mixing bytes up, every rank gets an error that
// names ranks and what they run.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "src/collective/operation.h"
#include "tests/support/crew.h"
#include "tests/support/rank_group.h"

namespace catenary::testing {
namespace {

using namespace std::chrono_literals;

struct Mismatch {
  std::string name;
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
Mismatch message(const std::string& name, Sent sent, Sent expected, std::vector<std::string> said) {
  const auto call = [=](Seat& seat, float* data) {
    if (seat.rank == 0) return ncclSend(data, sent.count, sent.type, 1, seat.comm, seat.stream);
    return ncclRecv(data, expected.count, expected.type, 0, seat.comm, seat.stream);
  };
  return {name, 2, call, std::move(said)};
}

std::vector<Mismatch> in_messages() {
  return {
      message("count", {10, ncclFloat32}, {11, ncclFloat32},
              {"Send", "Recv", "count 10,", "count 11,", "rank 0", "rank 1",
               "the same count and type"}),
      message("long_count", {65536, ncclFloat32}, {3, ncclFloat32}, {"count 65536,", "count 3,"}),
      message("no_count", {0, ncclFloat32}, {3, ncclFloat32}, {"count 0,", "count 3,"}),
      message("type", {10, ncclInt32}, {10, ncclFloat32}, {"int32", "float"}),
  };
}

// How ranks may take different ones for the root.
struct Roots {
  const char* name;
  int (*root)(int rank, int nranks);
};
constexpr Roots kRoots[] = {
    {"the_last_errs", [](int rank, int nranks) { return rank == nranks - 1 ? 1 : 0; }},
    {"all_their_own", [](int rank, int) { return rank; }},
    {"all_the_next", [](int rank, int nranks) { return (rank + 1) % nranks; }},
};

ncclResult_t call_with_root(Collective kind, Seat& seat, float* data, std::size_t count, int root) {
  float* const other = data + (1 << 15);
  switch (kind) {
    case Collective::kBroadcast:
      return ncclBroadcast(data, other, count, ncclFloat32, root, seat.comm, seat.stream);
    case Collective::kReduce:
      return ncclReduce(data, other, count, ncclFloat32, ncclSum, root, seat.comm, seat.stream);
    case Collective::kGather:
      return ncclGather(data, other, count, ncclFloat32, root, seat.comm, seat.stream);
    case Collective::kScatter:
      return ncclScatter(data, other, count, ncclFloat32, root, seat.comm, seat.stream);
    default: return ncclInternalError;
  }
}

std::vector<Mismatch> in_roots() {
  std::vector<Mismatch> tests;
  for (const Collective kind :
       {Collective::kReduce, Collective::kBroadcast, Collective::kGather, Collective::kScatter}) {
    for (const Roots& roots : kRoots) {
      for (int nranks = 2; nranks <= 4; ++nranks) {
        // Small ones are sent and forgotten, long ones must be taken.
        const std::size_t count = nranks == 3 ? 4000 : 64;
        const std::string name(name_of(kind));
        tests.push_back({name + "_of_" + std::to_string(nranks) + "_where_" + roots.name,
                         nranks,
                         [=](Seat& seat, float* data) {
                           const int root = roots.root(seat.rank, nranks);
                           return call_with_root(kind, seat, data, count, root);
                         },
                         {name + " number 0", ", root "}});
      }
    }
  }
  return tests;
}

// One rank calls something that does not wait for the others.
std::vector<Mismatch> with_one_that_is_done() {
  std::vector<Mismatch> tests;
  for (int nranks = 2; nranks <= 4; ++nranks) {
    const auto all_reduce = [](Seat& seat, float* data) {
      return ncclAllReduce(data, data, 64, ncclFloat32, ncclSum, seat.comm, seat.stream);
    };
    const std::string of = "_of_" + std::to_string(nranks);
    tests.push_back({"broadcast" + of,
                     nranks,
                     [=](Seat& seat, float* data) {
                       if (seat.rank != 1) return all_reduce(seat, data);
                       return call_with_root(Collective::kBroadcast, seat, data, 64, 1);
                     },
                     {"AllReduce number 0", "Broadcast number 0", "rank 1"}});
    tests.push_back({"reduce" + of,
                     nranks,
                     [=](Seat& seat, float* data) {
                       if (seat.rank != 1) return all_reduce(seat, data);
                       return call_with_root(Collective::kReduce, seat, data, 64, 0);
                     },
                     {"AllReduce number 0", "Reduce number 0", "rank 1"}});
    tests.push_back({"broadcast_and_receive" + of,
                     nranks,
                     [=](Seat& seat, float* data) {
                       if (seat.rank != 1) return all_reduce(seat, data);
                       call_with_root(Collective::kBroadcast, seat, data, 64, 1);
                       return ncclRecv(data, 64, ncclFloat32, 0, seat.comm, seat.stream);
                     },
                     {"AllReduce number 0", "Broadcast number 0", "rank 1"}});
  }
  // Of two ranks, with a sum so long that a message as long as a loan might be one.
  tests.push_back({"broadcast_that_looks_like_a_loan",
                   2,
                   [](Seat& seat, float* data) {
                     if (seat.rank == 1)
                       return call_with_root(Collective::kBroadcast, seat, data, 6, 1);
                     return ncclAllReduce(data, data, 1 << 16, ncclFloat32, ncclSum, seat.comm,
                                          seat.stream);
                   },
                   {"AllReduce number 0", "Broadcast number 0", "rank 1"}});
  return tests;
}

class Disagreement : public ::testing::TestWithParam<Mismatch> {};

TEST_P(Disagreement, is_an_error_on_every_rank) { check_mismatch(GetParam()); }

std::string name_of(const ::testing::TestParamInfo<Mismatch>& test) { return test.param.name; }

INSTANTIATE_TEST_SUITE_P(InCollectives, Disagreement, ::testing::ValuesIn(in_collectives()),
                         name_of);
INSTANTIATE_TEST_SUITE_P(InMessages, Disagreement, ::testing::ValuesIn(in_messages()), name_of);
INSTANTIATE_TEST_SUITE_P(InRoots, Disagreement, ::testing::ValuesIn(in_roots()), name_of);
INSTANTIATE_TEST_SUITE_P(WithOneThatIsDone, Disagreement,
                         ::testing::ValuesIn(with_one_that_is_done()), name_of);

TEST(DisagreementWithOneself, in_a_group_is_an_error) {
  run_crew(1, [](Seat& seat) {
    float values[8] = {};
    require_success(ncclGroupStart(), "start");
    require_success(ncclSend(values, 3, ncclFloat32, 0, seat.comm, seat.stream), "send");
    require_success(ncclRecv(values + 4, 4, ncclFloat32, 0, seat.comm, seat.stream), "recv");
    require_result(ncclGroupEnd(), ncclInvalidUsage, "end");
    const std::string text = last_error();
    require(
        contains(text, "do not agree") && contains(text, "count 3") && contains(text, "count 4"),
        text);
    require_success(ncclCommAbort(seat.comm), "abort");
    seat.comm = nullptr;
  });
}

// Nobody asks before that.
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
       {"Broadcast number 0", "root 0", "root 1"}});
}

// The true root has sent, and neither waits nor asks; nor does the wrong one.
TEST(DisagreementLater, about_the_root_is_found_by_who_waits_alone) {
  std::atomic<bool> found{false};
  run_crew(3, [&](Seat& seat) {
    std::vector<float> data(1 << 16, 1);
    const int root = seat.rank == 2 ? 1 : 0;
    require_success(call_with_root(Collective::kScatter, seat, data.data(), 64, root), "Scatter");
    seat.finish();
    if (seat.rank == 2) {
      found = true;
      require_result(wait_for_failure(seat.comm, 15s), ncclInvalidUsage, "the failure");
    }
    const Stopwatch watch;
    while (!found && watch.ms() < 15000) std::this_thread::sleep_for(1ms);
    require(found, "rank 2 found nothing by itself");
  });
}

// Who compares has forgotten none of it, however much is issued meanwhile.
TEST(DisagreementLater, about_the_root_is_found_among_hundreds_that_are_issued) {
  check_mismatch({"",
                  3,
                  [](Seat& seat, float* data) {
                    for (int i = 0; i < 400; ++i) {
                      const int root = i == 20 && seat.rank == 2 ? 1 : 0;
                      const ncclResult_t result =
                          call_with_root(Collective::kReduce, seat, data, 64, root);
                      if (result != ncclSuccess) return result;
                    }
                    return ncclSuccess;
                  },
                  {"Reduce number 20", "rank 2"}});
}

// Every rank but 0 is over at once, ends the communicator, and asks for nothing.
TEST(DisagreementLater, about_the_root_ends_who_waits_when_the_others_leave) {
  run_crew(3, [](Seat& seat) {
    std::vector<float> data(1 << 16, 1);
    const int root = seat.rank == 2 ? 1 : 0;
    require_success(call_with_root(Collective::kReduce, seat, data.data(), 64, root), "Reduce");
    if (seat.rank != 0) return;  // destroys
    const ncclResult_t failure = wait_for_failure(seat.comm, 15s);
    require(failure == ncclInvalidUsage || failure == ncclRemoteError,
            "result " + std::to_string(failure));
    seat.finish();
  });
}

// What was broadcast came to nobody, and the ranks have got on well since, over other links.
TEST(DisagreementLater, about_the_root_is_an_error_of_finalize_at_the_latest) {
  run_crew(2, [](Seat& seat) {
    std::vector<float> data(1 << 16, 1);
    require_success(call_with_root(Collective::kBroadcast, seat, data.data(), 64, seat.rank),
                    "Broadcast");
    require_success(ncclGroupStart(), "group");
    ncclSend(data.data(), 64, ncclFloat32, seat.next(), seat.comm, seat.stream);
    ncclRecv(data.data() + 64, 64, ncclFloat32, seat.next(), seat.comm, seat.stream);
    require_success(ncclGroupEnd(), "group");
    seat.finish();
    require_result(ncclCommFinalize(seat.comm), ncclInvalidUsage, "ncclCommFinalize");
    const std::string text = last_error();
    require(contains(text, "root 0") && contains(text, "root 1"), text);
  });
}

}  // namespace
}  // namespace catenary::testing
