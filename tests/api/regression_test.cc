// Mistakes that were made once, each in the shape in which a user would have met it.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

#include "tests/support/crew.h"
#include "tests/support/rank_group.h"

namespace catenary::testing {
namespace {

using namespace std::chrono_literals;

// With patience of one second (CATENARY_STALL_TIMEOUT), rank 2 is late by more than that, while
// what rank 1 sent ahead lies unread at rank 0.
TEST(Stall, forgives_a_third_rank_that_is_late) {
  run_crew(3, [](Seat& seat) {
    float value = 1;
    if (seat.rank == 2) std::this_thread::sleep_for(2500ms);
    if (seat.rank != 0) {
      require_success(ncclSend(&value, 1, ncclFloat32, 0, seat.comm, seat.stream), "Send");
    } else {
      for (const int peer : {2, 1}) {
        require_success(ncclRecv(&value, 1, ncclFloat32, peer, seat.comm, seat.stream), "Recv");
        seat.finish();
      }
    }
    require_success(ncclAllReduce(&value, &value, 1, ncclFloat32, ncclSum, seat.comm, seat.stream),
                    "AllReduce");
    seat.finish();
    require(value == 3, "the sum after the late message");
  });
}

// Both wait in a send of more than links hold for longer than patience lasts.
TEST(Stall, forgives_ranks_that_both_send_first) {
  run_crew(2, [](Seat& seat) {
    constexpr std::size_t kCount = 4 << 20;
    const std::vector<float> given(kCount, 1);
    std::vector<float> taken(kCount);
    const int peer = 1 - seat.rank;
    TestStream other;
    require_success(ncclSend(given.data(), kCount, ncclFloat32, peer, seat.comm, seat.stream),
                    "Send");
    std::this_thread::sleep_for(2500ms);
    require_success(ncclRecv(taken.data(), kCount, ncclFloat32, peer, seat.comm, other), "Recv");
    other.finish();
    seat.finish();
    require(taken == given, "what was received");
  });
}

TEST(Stall, ends_an_all_reduce_that_meets_a_send) {
  run_crew(2, [](Seat& seat) {
    float value = 1;
    const ncclResult_t issued =
        seat.rank == 0
            ? ncclAllReduce(&value, &value, 1, ncclFloat32, ncclSum, seat.comm, seat.stream)
            : ncclRecv(&value, 1, ncclFloat32, 0, seat.comm, seat.stream);
    require_success(issued, "either operation");
    require_result(wait_for_failure(seat.comm, 10s), ncclInvalidUsage, "ranks that disagree");
    const std::string text = last_error();
    require(contains(text, "AllReduce") && contains(text, "Recv"), text);
  });
}

TEST(Threads, may_share_a_communicator_and_a_stream) {
  run_crew(1, [](Seat& seat) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&seat] {
        float value = 1;
        for (int k = 0; k < 2000; ++k) {
          ncclAllReduce(&value, &value, 1, ncclFloat32, ncclSum, seat.comm, seat.stream);
        }
        catStreamSynchronize(seat.stream);
      });
    }
    for (std::thread& thread : threads) thread.join();
    seat.finish();
  });
}

TEST(Split, twice_in_one_group_of_one_parent) {
  run_crew(2, [](Seat& seat) {
    ncclComm_t both = nullptr;
    ncclComm_t alone = nullptr;
    require_success(ncclGroupStart(), "group");
    require_success(ncclCommSplit(seat.comm, 0, 0, &both, nullptr), "split");
    require_success(ncclCommSplit(seat.comm, seat.rank, 0, &alone, nullptr), "split");
    require_success(ncclGroupEnd(), "group");
    int counts[2] = {};
    require_success(ncclCommCount(both, &counts[0]), "count");
    require_success(ncclCommCount(alone, &counts[1]), "count");
    require(counts[0] == 2 && counts[1] == 1, "the sizes of the new communicators");
    require_success(ncclCommDestroy(both), "destroy");
    require_success(ncclCommDestroy(alone), "destroy");
  });
}

// NCCL leaves it undefined, but nccl-tests run it, so that it must not be refused.
TEST(AllToAll, in_place_is_right) {
  run_crew(3, [](Seat& seat) {
    constexpr std::size_t kCount = 100000;
    std::vector<int> values(3 * kCount);
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<int>(3 * (i / kCount)) + seat.rank;
    }
    require_success(
        ncclAlltoAll(values.data(), values.data(), kCount, ncclInt32, seat.comm, seat.stream),
        "AlltoAll in place");
    seat.finish();
    for (std::size_t i = 0; i < values.size(); ++i) {
      require(values[i] == 3 * seat.rank + static_cast<int>(i / kCount),
              [&] { return "element " + std::to_string(i); });
    }
  });
}

TEST(PreMulSum, of_another_communicator_is_refused) {
  run_crew(1, [](Seat& seat) {
    ncclComm_t other = nullptr;
    require_success(ncclCommInitRank(&other, 1, new_unique_id(), 0), "init");
    ncclRedOp_t own;
    ncclRedOp_t foreign;
    float factor = 2;
    require_success(
        ncclRedOpCreatePreMulSum(&own, &factor, ncclFloat32, ncclScalarHostImmediate, seat.comm),
        "create");
    require_success(
        ncclRedOpCreatePreMulSum(&foreign, &factor, ncclFloat32, ncclScalarHostImmediate, other),
        "create");
    require_result(ncclAllReduce(&factor, &factor, 1, ncclFloat32, foreign, seat.comm, seat.stream),
                   ncclInvalidArgument, "a foreign operation");
    require_success(ncclCommDestroy(other), "destroy");
  });
}

}  // namespace
}  // namespace catenary::testing
