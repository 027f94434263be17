// Collectives with parts of uneven length, and the barrier (include/catenary/collectives.h).
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "catenary/collectives.h"
#include "tests/support/crew.h"
#include "tests/support/rank_group.h"

namespace catenary::testing {
namespace {

using namespace std::chrono_literals;
using Counts = std::vector<std::size_t>;

constexpr int kGap = -77;

// What rank `from` sends to rank `to`: some nothing, some of many slots.
std::size_t count_between(int from, int to, int nranks) {
  constexpr std::size_t kCounts[] = {0, 1, 3, 17, 5000, 0, 40000, 64};
  return kCounts[static_cast<std::size_t>(from * nranks + to * 3) % std::size(kCounts)];
}
Counts counts_from(int from, int nranks) {
  Counts counts;
  for (int to = 0; to < nranks; ++to) counts.push_back(count_between(from, to, nranks));
  return counts;
}
Counts counts_to(int to, int nranks) {
  Counts counts;
  for (int from = 0; from < nranks; ++from) counts.push_back(count_between(from, to, nranks));
  return counts;
}

// Parts in the opposite order of ranks, with gaps of two elements.
Counts backwards(const Counts& counts) {
  Counts displs(counts.size());
  std::size_t at = 2;
  for (std::size_t rank = counts.size(); rank-- > 0;) {
    displs[rank] = at;
    at += counts[rank] + 2;
  }
  return displs;
}
Counts packed(const Counts& counts) {
  Counts displs;
  std::size_t at = 0;
  for (const std::size_t count : counts) {
    displs.push_back(at);
    at += count;
  }
  return displs;
}
std::size_t extent(const Counts& counts) {
  std::size_t sum = 2 * counts.size() + 2;
  for (const std::size_t count : counts) sum += count;
  return sum;
}

int value_of(int from, int to, std::size_t i) {
  return from * 1000003 + to * 1009 + static_cast<int>(i % 997);
}

// Fills, or checks, the parts that `counts` and `displs` describe.
void fill(std::vector<int>& buffer, const Counts& counts, const Counts& displs,
          const std::function<int(int, std::size_t)>& value) {
  for (std::size_t part = 0; part < counts.size(); ++part) {
    for (std::size_t i = 0; i < counts[part]; ++i) {
      buffer[displs[part] + i] = value(static_cast<int>(part), i);
    }
  }
}
void check(const std::vector<int>& buffer, const Counts& counts, const Counts& displs,
           const std::function<int(int, std::size_t)>& value, const char* what) {
  std::vector<int> expected(buffer.size(), kGap);
  fill(expected, counts, displs, value);
  for (std::size_t i = 0; i < buffer.size(); ++i) {
    require(buffer[i] == expected[i], [&] {
      return std::string(what) + ": element " + std::to_string(i) + " is " +
             std::to_string(buffer[i]) + ", not " + std::to_string(expected[i]);
    });
  }
}

class Uneven : public ::testing::TestWithParam<int> {};

TEST_P(Uneven, all_to_all_takes_every_part_to_its_place) {
  run_crew(GetParam(), [](Seat& seat) {
    const Counts sent = counts_from(seat.rank, seat.nranks);
    const Counts taken = counts_to(seat.rank, seat.nranks);
    for (const bool is_packed : {false, true}) {
      const Counts from = is_packed ? packed(sent) : backwards(sent);
      const Counts to = is_packed ? packed(taken) : backwards(taken);
      std::vector<int> input(extent(sent), kGap);
      std::vector<int> output(extent(taken), kGap);
      fill(input, sent, from,
           [&](int part, std::size_t i) { return value_of(seat.rank, part, i); });
      require_success(catAlltoAllv(input.data(), sent.data(), is_packed ? nullptr : from.data(),
                                   output.data(), taken.data(), is_packed ? nullptr : to.data(),
                                   ncclInt32, seat.comm, seat.stream),
                      "AlltoAllv");
      seat.finish();
      check(
          output, taken, to, [&](int part, std::size_t i) { return value_of(part, seat.rank, i); },
          "AlltoAllv");
    }
  });
}

TEST_P(Uneven, all_to_all_in_place_exchanges_parts_of_the_same_length) {
  run_crew(GetParam(), [](Seat& seat) {
    Counts counts;
    for (int peer = 0; peer < seat.nranks; ++peer) {
      counts.push_back(count_between(seat.rank + peer, seat.rank * peer, 3));
    }
    const Counts displs = backwards(counts);
    std::vector<int> buffer(extent(counts), kGap);
    fill(buffer, counts, displs,
         [&](int part, std::size_t i) { return value_of(seat.rank, part, i); });
    require_success(catAlltoAllv(buffer.data(), counts.data(), displs.data(), buffer.data(),
                                 counts.data(), displs.data(), ncclInt32, seat.comm, seat.stream),
                    "AlltoAllv");
    seat.finish();
    check(
        buffer, counts, displs,
        [&](int part, std::size_t i) { return value_of(part, seat.rank, i); }, "AlltoAllv");
  });
}

TEST_P(Uneven, all_gather_puts_parts_where_each_rank_wants_them) {
  run_crew(GetParam(), [](Seat& seat) {
    const Counts counts = counts_from(1, seat.nranks);
    const auto own = static_cast<std::size_t>(seat.rank);
    for (const bool in_place : {false, true}) {
      const Counts displs = seat.rank % 2 == 0 ? packed(counts) : backwards(counts);
      std::vector<int> output(extent(counts), kGap);
      std::vector<int> input(counts[own] + 1);
      int* mine = in_place ? output.data() + displs[own] : input.data();
      for (std::size_t i = 0; i < counts[own]; ++i) mine[i] = value_of(seat.rank, 0, i);
      require_success(catAllGatherv(mine, counts[own], output.data(), counts.data(),
                                    seat.rank % 2 == 0 ? nullptr : displs.data(), ncclInt32,
                                    seat.comm, seat.stream),
                      "AllGatherv");
      seat.finish();
      check(
          output, counts, displs, [](int part, std::size_t i) { return value_of(part, 0, i); },
          "AllGatherv");
    }
  });
}

TEST_P(Uneven, reduce_scatter_reduces_every_part_for_its_rank) {
  run_crew(GetParam(), [](Seat& seat) {
    const Counts counts = counts_from(2, seat.nranks);
    const auto own = static_cast<std::size_t>(seat.rank);
    for (const bool in_place : {false, true}) {
      const Counts displs = backwards(counts);
      std::vector<int> input(extent(counts), kGap);
      fill(input, counts, displs,
           [&](int part, std::size_t i) { return value_of(seat.rank, part, i); });
      std::vector<int> before = input;
      std::vector<int> output(counts[own] + 1, kGap);
      int* result = in_place ? input.data() + displs[own] : output.data();
      require_success(catReduceScatterv(input.data(), counts.data(), displs.data(), result,
                                        counts[own], ncclInt32, ncclSum, seat.comm, seat.stream),
                      "ReduceScatterv");
      seat.finish();
      const auto sum = [&](std::size_t i) {
        int all = 0;
        for (int rank = 0; rank < seat.nranks; ++rank) all += value_of(rank, seat.rank, i);
        return all;
      };
      for (std::size_t i = 0; i < counts[own]; ++i) {
        require(result[i] == sum(i),
                [&] { return "ReduceScatterv: element " + std::to_string(i); });
        before[displs[own] + i] = input[displs[own] + i];
      }
      require(input == before, "ReduceScatterv changed its input beside this rank's part");
    }
  });
}

TEST_P(Uneven, nothing_at_all_is_allowed_and_needs_no_buffers) {
  run_crew(GetParam(), [](Seat& seat) {
    const Counts none(static_cast<std::size_t>(seat.nranks), 0);
    const auto null = nullptr;
    require_success(catAlltoAllv(null, none.data(), null, null, none.data(), null, ncclFloat32,
                                 seat.comm, seat.stream),
                    "AlltoAllv");
    require_success(
        catAllGatherv(null, 0, null, none.data(), null, ncclFloat32, seat.comm, seat.stream),
        "AllGatherv");
    require_success(catReduceScatterv(null, none.data(), null, null, 0, ncclFloat32, ncclSum,
                                      seat.comm, seat.stream),
                    "ReduceScatterv");
    seat.finish();
  });
}

TEST_P(Uneven, goes_in_groups_with_other_operations) {
  run_crew(GetParam(), [](Seat& seat) {
    const Counts sent = counts_from(seat.rank, seat.nranks);
    const Counts taken = counts_to(seat.rank, seat.nranks);
    std::vector<int> input(extent(sent), seat.rank);
    std::vector<int> output(extent(taken), kGap);
    int one = 1;
    int message = kGap;
    require_success(ncclGroupStart(), "GroupStart");
    require_success(ncclAllReduce(&one, &one, 1, ncclInt32, ncclSum, seat.comm, seat.stream), "1");
    {
      // Counts may go with the call.
      const Counts counts = sent;
      require_success(catAlltoAllv(input.data(), counts.data(), nullptr, output.data(),
                                   taken.data(), nullptr, ncclInt32, seat.comm, seat.stream),
                      "2");
    }
    require_success(catBarrier(seat.comm, seat.stream), "3");
    require_success(ncclSend(&seat.rank, 1, ncclInt32, seat.next(), seat.comm, seat.stream), "4");
    require_success(ncclRecv(&message, 1, ncclInt32, seat.previous(), seat.comm, seat.stream), "5");
    require_success(ncclGroupEnd(), "GroupEnd");
    seat.finish();
    require(one == seat.nranks && message == seat.previous(), "the others in the group");
    check(
        output, taken, packed(taken), [](int part, std::size_t) { return part; }, "AlltoAllv");
  });
}

TEST_P(Uneven, a_barrier_holds_back_what_follows_until_all_have_come) {
  std::atomic<int> come{0};
  run_crew(GetParam(), [&](Seat& seat) {
    for (int round = 1; round <= 20; ++round) {
      if (round % 5 == seat.rank) std::this_thread::sleep_for(3ms);
      come.fetch_add(1);
      require_success(catBarrier(seat.comm, seat.stream), "Barrier");
      seat.finish();
      require(come.load() >= round * seat.nranks, "a rank has passed before all had come");
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, Uneven, ::testing::Values(1, 2, 3, 5, 8),
                         [](const auto& param) { return std::to_string(param.param); });

// Every rank calls, and every rank gets an error with these words.
void check_refused(int nranks, const std::function<ncclResult_t(Seat&)>& call,
                   const std::vector<std::string>& said) {
  run_crew(nranks, [&](Seat& seat) {
    const ncclResult_t called = call(seat);
    require(called == ncclSuccess || called == ncclInvalidUsage || called == ncclRemoteError,
            "the call itself");
    const ncclResult_t failure = wait_for_failure(seat.comm, 15s);
    require(failure == ncclInvalidUsage || failure == ncclRemoteError,
            "result " + std::to_string(failure));
    seat.finish();
    require(catBarrier(seat.comm, seat.stream) == failure, "a later call");
    const std::string text = last_error();
    for (const std::string& part : said) require(contains(text, part), text + "\nlacks: " + part);
    require_success(ncclCommAbort(seat.comm), "abort");
    seat.comm = nullptr;
  });
}

TEST(UnevenDisagreement, of_a_sender_and_a_receiver_is_an_error_that_names_both_counts) {
  // 0: the receiver thinks that nothing comes.
  for (const std::size_t expected : {std::size_t{6}, std::size_t{0}, std::size_t{100000}}) {
    check_refused(
        3,
        [&](Seat& seat) {
          static std::vector<int> input(1 << 19);
          thread_local std::vector<int> output(1 << 19);
          const Counts sent(3, 5);
          Counts taken(3, 5);
          if (seat.rank == 2) taken[1] = expected;
          return catAlltoAllv(input.data(), sent.data(), nullptr, output.data(), taken.data(),
                              nullptr, ncclInt32, seat.comm, seat.stream);
        },
        {"AlltoAllv", "count 5, int32, from rank 1", "count " + std::to_string(expected) + ","});
  }
}

TEST(UnevenDisagreement, about_how_a_sum_of_counts_is_cut_is_an_error) {
  check_refused(3,
                [](Seat& seat) {
                  thread_local std::vector<int> buffer(100);
                  Counts counts = {5, 7, 9};
                  if (seat.rank == 2) counts = {7, 5, 9};
                  return catAllGatherv(buffer.data(), counts[static_cast<std::size_t>(seat.rank)],
                                       buffer.data() + 50, counts.data(), nullptr, ncclInt32,
                                       seat.comm, seat.stream);
                },
                {"AllGatherv", "do not agree", "count 21", "digest"});
  check_refused(2,
                [](Seat& seat) {
                  thread_local std::vector<int> buffer(100);
                  const Counts counts = {5, seat.rank == 0 ? std::size_t{6} : std::size_t{4}};
                  return catReduceScatterv(buffer.data(), counts.data(), nullptr,
                                           buffer.data() + 50,
                                           counts[static_cast<std::size_t>(seat.rank)], ncclInt32,
                                           ncclMax, seat.comm, seat.stream);
                },
                {"ReduceScatterv", "count 11", "count 9"});
}

TEST(UnevenDisagreement, between_a_barrier_and_another_collective_is_an_error) {
  check_refused(3,
                [](Seat& seat) {
                  thread_local int value = 0;
                  if (seat.rank != 1) return catBarrier(seat.comm, seat.stream);
                  return ncclAllReduce(&value, &value, 1, ncclInt32, ncclSum, seat.comm,
                                       seat.stream);
                },
                {"Barrier", "AllReduce"});
}

// An all-to-all in which the root gets all is a gather to who calls it so.
TEST(MarkDisagreement, about_what_arguments_do_not_say_is_an_error) {
  check_refused(3,
                [](Seat& seat) {
                  thread_local std::vector<int> buffer(100);
                  const auto root = static_cast<std::size_t>(seat.rank == 2 ? 1 : 0);
                  Counts sent(3, 0);
                  sent[root] = 5;
                  const Counts taken(3, root == static_cast<std::size_t>(seat.rank) ? 5 : 0);
                  const ncclResult_t marked =
                      catMarkCollectives(seat.comm, 0x100 + static_cast<std::uint32_t>(root));
                  if (marked != ncclSuccess) return marked;
                  return catAlltoAllv(buffer.data(), sent.data(), nullptr, buffer.data() + 50,
                                      taken.data(), nullptr, ncclInt32, seat.comm, seat.stream);
                },
                {"AlltoAllv", "mark 0x00000100", "mark 0x00000101", "parts and mark"});
  // Who disagrees about more than counts is told both counts all the same.
  check_refused(2,
                [](Seat& seat) {
                  thread_local std::vector<int> buffer(100);
                  const Counts two(2, 2);
                  const ncclDataType_t type = seat.rank == 0 ? ncclFloat32 : ncclInt32;
                  return catAlltoAllv(buffer.data(), two.data(), nullptr, buffer.data() + 50,
                                      two.data(), nullptr, type, seat.comm, seat.stream);
                },
                {"count 2, float", "count 2, int32"});
  for (const std::uint32_t mine : {0u, 7u}) {
    check_refused(2,
                  [mine](Seat& seat) {
                    thread_local float value = 1;
                    catMarkCollectives(seat.comm, seat.rank == 0 ? 0x80000000u : mine);
                    return ncclAllReduce(&value, &value, 1, ncclFloat32, ncclSum, seat.comm,
                                         seat.stream);
                  },
                  {"AllReduce", "mark 0x80000000"});
  }
}

TEST(Mark, is_that_of_the_time_of_the_call) {
  run_crew(2, [](Seat& seat) {
    std::vector<int> values(3, 1);
    require_success(ncclGroupStart(), "start");
    for (std::size_t i = 0; i < values.size(); ++i) {
      require_success(catMarkCollectives(seat.comm, static_cast<std::uint32_t>(i)), "mark");
      ncclAllReduce(&values[i], &values[i], 1, ncclInt32, ncclSum, seat.comm, seat.stream);
    }
    // What was called keeps the mark that it was called with.
    require_success(catMarkCollectives(seat.comm, static_cast<std::uint32_t>(seat.rank)), "mark");
    require_success(ncclGroupEnd(), "end");
    int message = -1;
    require_success(ncclGroupStart(), "start");
    ncclSend(&seat.rank, 1, ncclInt32, seat.next(), seat.comm, seat.stream);
    ncclRecv(&message, 1, ncclInt32, seat.next(), seat.comm, seat.stream);
    require_success(ncclGroupEnd(), "messages have none");
    seat.finish();
    require(values == std::vector<int>(3, 2) && message == seat.next(), "values");
    require_result(catMarkCollectives(nullptr, 1), ncclInvalidArgument, "no communicator");
  });
}

TEST(UnevenArguments, that_cannot_be_are_refused_and_the_communicator_lives_on) {
  run_crew(2, [](Seat& seat) {
    std::vector<int> a(16);
    std::vector<int> b(16);
    const Counts two = {2, 2};
    const Counts huge = {SIZE_MAX / 2, 2};
    const Counts far = {SIZE_MAX / 4, SIZE_MAX / 2};
    const Counts wrong = {3, 3};
    const auto all_to_all = [&](const Counts& sent, const std::size_t* displs, const Counts& taken,
                                void* to) {
      return catAlltoAllv(a.data(), sent.data(), displs, to, taken.data(), nullptr, ncclInt32,
                          seat.comm, seat.stream);
    };
    require_result(all_to_all(two, nullptr, wrong, b.data()), ncclInvalidArgument, "own counts");
    require_result(all_to_all(huge, nullptr, two, b.data()), ncclInvalidArgument, "huge");
    require_result(all_to_all(two, far.data(), two, b.data()), ncclInvalidArgument, "far");
    const Counts elsewhere = {4, 8};
    require_result(all_to_all(two, elsewhere.data(), two, a.data()), ncclInvalidArgument,
                   "in place, from another place");
    require_result(all_to_all(two, nullptr, two, nullptr), ncclInvalidArgument, "no buffer");
    const Counts overlapping = {3, 2};
    require_result(catAlltoAllv(a.data(), two.data(), nullptr, b.data(), two.data(),
                                overlapping.data(), ncclInt32, seat.comm, seat.stream),
                   ncclInvalidArgument, "parts that overlap");
    require_result(catAllGatherv(a.data(), 2, b.data(), two.data(), overlapping.data(), ncclInt32,
                                 seat.comm, seat.stream),
                   ncclInvalidArgument, "AllGatherv's parts overlap");
    require_result(catAlltoAllv(a.data(), nullptr, nullptr, b.data(), two.data(), nullptr,
                                ncclInt32, seat.comm, seat.stream),
                   ncclInvalidArgument, "no counts");
    require_result(catAllGatherv(a.data(), 3, b.data(), two.data(), nullptr, ncclInt32, seat.comm,
                                 seat.stream),
                   ncclInvalidArgument, "AllGatherv's own count");
    require_result(catReduceScatterv(a.data(), two.data(), nullptr, b.data(), 1, ncclInt32, ncclSum,
                                     seat.comm, seat.stream),
                   ncclInvalidArgument, "ReduceScatterv's own count");
    require_result(catBarrier(nullptr, seat.stream), ncclInvalidArgument, "no communicator");
    require_success(all_to_all(two, nullptr, two, b.data()), "a right one");
    seat.finish();
  });
}

}  // namespace
}  // namespace catenary::testing
