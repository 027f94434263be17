// Abort: local, from any thread, while others wait anywhere; what waits ends, and peers are told.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "tests/support/crew.h"
#include "tests/support/rank_group.h"

namespace catenary::testing {
namespace {

using namespace std::chrono_literals;

constexpr double kPrompt_ms = 1000;

TEST(Abort, ends_a_collective_that_waits_and_tells_the_others) {
  run_crew(3, [](Seat& seat) {
    // Rank 2 never calls, so 0 and 1 wait. Rank 0 is aborted by another thread of its own.
    std::vector<float> data(1 << 18, 1);
    if (seat.rank != 2) {
      require_success(ncclAllReduce(data.data(), data.data(), data.size(), ncclFloat32, ncclSum,
                                    seat.comm, seat.stream),
                      "AllReduce");
    }
    if (seat.rank == 0) {
      std::atomic<double> returned{0};
      std::thread watchdog([comm = seat.comm, &returned] {
        std::this_thread::sleep_for(50ms);
        const Stopwatch watch;
        EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
        returned = watch.ms();
      });
      const Stopwatch watch;
      const catError_t synchronized = catStreamSynchronize(seat.stream);
      const double waited = watch.ms();
      watchdog.join();
      seat.comm = nullptr;
      require(synchronized == catSuccess, "catStreamSynchronize");
      require(waited < 50 + kPrompt_ms, "the stream took " + std::to_string(waited) + " ms to end");
      require(returned < kPrompt_ms, "the abort took " + std::to_string(returned.load()) + " ms");
    } else {
      require_result(wait_for_failure(seat.comm, 5s), ncclRemoteError, "the peers of who aborts");
      seat.finish();
      require_result(
          ncclAllReduce(data.data(), data.data(), 1, ncclFloat32, ncclSum, seat.comm, seat.stream),
          ncclRemoteError, "use after the failure");
      require(contains(last_error(), "rank 0 aborted"), last_error());
      require_success(ncclCommAbort(seat.comm), "abort of a failed communicator");
      seat.comm = nullptr;
    }
  });
}

TEST(Abort, when_idle_disturbs_nobody) {
  run_crew(2, [](Seat& seat) {
    float one = 1;
    require_success(ncclAllReduce(&one, &one, 1, ncclFloat32, ncclSum, seat.comm, seat.stream),
                    "AllReduce");
    seat.finish();
    if (seat.rank == 0) {
      require_success(ncclCommAbort(seat.comm), "abort");
      seat.comm = nullptr;
    } else {
      std::this_thread::sleep_for(100ms);
      ncclResult_t state = ncclInternalError;
      require_success(ncclCommGetAsyncError(seat.comm, &state), "ncclCommGetAsyncError");
      require_result(state, ncclSuccess, "the state of the other rank");
    }
  });
}

TEST(Leaving, is_told_to_who_waits_for_the_rank_that_left) {
  run_crew(3, [](Seat& seat) {
    if (seat.rank == 1) {
      require_success(ncclCommDestroy(seat.comm), "destroy");
      seat.comm = nullptr;
      return;
    }
    std::vector<float> data(1000, 1);
    require_success(ncclAllReduce(data.data(), data.data(), data.size(), ncclFloat32, ncclSum,
                                  seat.comm, seat.stream),
                    "AllReduce");
    require_result(wait_for_failure(seat.comm, 10s), ncclRemoteError,
                   "an operation without rank 1");
    require(contains(last_error(), "rank 1 has left the communicator"), last_error());
  });
}

TEST(Abort, ends_what_waits_in_finalize) {
  run_crew(2, [](Seat& seat) {
    if (seat.rank == 1) return;
    float one = 1;
    require_success(ncclAllReduce(&one, &one, 1, ncclFloat32, ncclSum, seat.comm, seat.stream),
                    "AllReduce");
    std::thread watchdog([comm = seat.comm] {
      std::this_thread::sleep_for(50ms);
      EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
    });
    const Stopwatch watch;
    ncclCommFinalize(seat.comm);
    const double waited = watch.ms();
    watchdog.join();
    seat.comm = nullptr;
    require(waited < 50 + kPrompt_ms, "finalize took " + std::to_string(waited) + " ms");
  });
}

TEST(Abort, ends_an_init_in_the_background) {
  ncclConfig_t config = non_blocking();
  ncclComm_t comm = nullptr;
  ncclCommInitRankConfig(&comm, 2, new_unique_id(), 0, &config);
  ASSERT_NE(comm, nullptr);
  std::this_thread::sleep_for(50ms);
  const Stopwatch watch;
  EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
  EXPECT_LT(watch.ms(), kPrompt_ms);
}

TEST(Abort, ends_an_init_that_blocks_in_another_thread) {
  std::atomic<ncclComm_t> comm = nullptr;
  std::thread initializer([&, id = new_unique_id()] {
    EXPECT_NE(ncclCommInitRank(reinterpret_cast<ncclComm_t*>(&comm), 2, id, 0), ncclSuccess);
  });
  ncclComm_t seen = nullptr;
  while ((seen = comm.load()) == nullptr) std::this_thread::sleep_for(1ms);
  std::this_thread::sleep_for(50ms);
  const Stopwatch watch;
  EXPECT_EQ(ncclCommAbort(seen), ncclSuccess);
  initializer.join();
  EXPECT_LT(watch.ms(), kPrompt_ms);
  EXPECT_EQ(comm.load(), nullptr);
}

// Whether rank 0, aborted by another thread while it makes a communicator for which somebody is
// missing, gets on at once, and without one.
template <class Make>
void expect_no_wait_for_who_is_missing(int nranks, const Make& make) {
  run_crew(nranks, [&make](Seat& seat) {
    if (seat.rank != 0) return;
    std::thread watchdog([comm = seat.comm] {
      std::this_thread::sleep_for(50ms);
      EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
    });
    const Stopwatch watch;
    ncclComm_t child = nullptr;
    const ncclResult_t result = make(seat.comm, &child);
    const double waited = watch.ms();
    watchdog.join();
    seat.comm = nullptr;
    require(result != ncclSuccess && child == nullptr, "the call succeeded");
    require(waited < 50 + kPrompt_ms, "the call took " + std::to_string(waited) + " ms");
  });
}

TEST(Abort, ends_a_split_that_waits_for_the_other_ranks) {
  expect_no_wait_for_who_is_missing(2, [](ncclComm_t comm, ncclComm_t* child) {
    return ncclCommSplit(comm, 0, 0, child, nullptr);
  });
}

TEST(Abort, ends_a_shrink_that_waits_for_a_rank_that_never_comes) {
  expect_no_wait_for_who_is_missing(3, [](ncclComm_t comm, ncclComm_t* child) {
    int excluded = 2;
    return ncclCommShrink(comm, &excluded, 1, child, nullptr, NCCL_SHRINK_ABORT);
  });
}

TEST(Abort, of_what_another_thread_destroys_succeeds) {
  for (int round = 0; round < 20; ++round) {
    run_with_an_idle_peer([](Seat& seat) {
      std::atomic<bool> destroys{false};
      std::thread destroyer([comm = seat.comm, &destroys] {
        destroys = true;
        const ncclResult_t destroyed = ncclCommDestroy(comm);
        const bool was_late = contains(last_error(), "has already been destroyed");
        EXPECT_TRUE(destroyed == ncclSuccess || was_late) << last_error();
      });
      while (!destroys) std::this_thread::yield();
      std::this_thread::sleep_for(2ms);
      const ncclResult_t aborted = ncclCommAbort(seat.comm);
      destroyer.join();
      seat.comm = nullptr;
      require_success(aborted, "the abort");
    });
  }
}

TEST(Abort, leaves_other_communicators_of_the_device_alone) {
  const ncclUniqueId id = new_unique_id();
  run_crew(2, [&](Seat& seat) {
    ncclComm_t second = nullptr;
    require_success(ncclCommInitRank(&second, 2, id, seat.rank), "second communicator");
    {
      TestStream other;
      float stuck = 1;
      if (seat.rank == 0) {
        require_success(
            ncclAllReduce(&stuck, &stuck, 1, ncclFloat32, ncclSum, seat.comm, seat.stream),
            "stuck");
      }
      std::vector<float> data(100000, 1);
      require_success(
          ncclAllReduce(data.data(), data.data(), data.size(), ncclFloat32, ncclSum, second, other),
          "ok");
      if (seat.rank == 0) {
        require_success(ncclCommAbort(seat.comm), "abort");
        seat.comm = nullptr;
      }
      require_success(
          ncclAllReduce(data.data(), data.data(), data.size(), ncclFloat32, ncclSum, second, other),
          "ok");
      other.finish();
      require(data == std::vector<float>(100000, 4), "sums of the other communicator");
    }
    require_success(ncclCommDestroy(second), "destroy");
  });
}

TEST(Abort, does_not_wait_for_a_users_function_and_spares_the_buffers_behind_it) {
  ncclComm_t comm = nullptr;
  ASSERT_EQ(ncclCommInitRank(&comm, 1, new_unique_id(), 0), ncclSuccess);
  TestStream stream;
  std::atomic<bool> go = false;
  const auto wait_for_go = [](void* flag) {
    while (!*static_cast<std::atomic<bool>*>(flag)) std::this_thread::sleep_for(1ms);
  };
  ASSERT_EQ(catLaunchHostFunc(stream, wait_for_go, &go), catSuccess);
  float from = 3;
  float to = 0;
  ASSERT_EQ(ncclAllReduce(&from, &to, 1, ncclFloat32, ncclSum, comm, stream), ncclSuccess);
  const Stopwatch watch;
  EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
  EXPECT_LT(watch.ms(), kPrompt_ms);
  go = true;
  stream.finish();
  EXPECT_EQ(to, 0);
}

}  // namespace
}  // namespace catenary::testing
