// The small print of reductions: premultiplied sums, averages, and identical bits everywhere.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "tests/support/crew.h"
#include "tests/support/rank_group.h"

namespace catenary::testing {
namespace {

using namespace std::chrono_literals;

TEST(PreMulSum, takes_a_host_scalar_at_once) {
  run_crew(3, [](Seat& seat) {
    float factor = static_cast<float>(seat.rank + 1);
    ncclRedOp_t op;
    require_success(
        ncclRedOpCreatePreMulSum(&op, &factor, ncclFloat32, ncclScalarHostImmediate, seat.comm),
        "create");
    factor = 1000;
    std::vector<float> data(1000, 2);
    require_success(ncclAllReduce(data.data(), data.data(), data.size(), ncclFloat32, op, seat.comm,
                                  seat.stream),
                    "AllReduce");
    require_success(ncclRedOpDestroy(op, seat.comm), "destroy");
    seat.finish();
    require(data == std::vector<float>(1000, 12),
            "2 * (1 + 2 + 3), got " + std::to_string(data[0]));
  });
}

TEST(PreMulSum, reads_a_device_scalar_when_the_stream_comes_to_it) {
  run_crew(2, [](Seat& seat) {
    std::atomic<bool> go = false;
    const auto wait_for_go = [](void* flag) {
      while (!*static_cast<std::atomic<bool>*>(flag)) std::this_thread::sleep_for(1ms);
    };
    double factor = 1000;
    const double later = 0.5;
    ncclRedOp_t op;
    require_success(
        ncclRedOpCreatePreMulSum(&op, &factor, ncclFloat64, ncclScalarDevice, seat.comm), "create");
    require(catLaunchHostFunc(seat.stream, wait_for_go, &go) == catSuccess, "catLaunchHostFunc");
    require(catMemcpyAsync(&factor, &later, sizeof later, seat.stream) == catSuccess,
            "catMemcpyAsync");
    std::vector<double> data(1000, 4);
    require_success(ncclAllReduce(data.data(), data.data(), data.size(), ncclFloat64, op, seat.comm,
                                  seat.stream),
                    "AllReduce");
    // The operator may go before the stream has come to its use.
    require_success(ncclRedOpDestroy(op, seat.comm), "destroy");
    go = true;
    seat.finish();
    require(data == std::vector<double>(1000, 4),
            "2 ranks * 4 * 0.5, got " + std::to_string(data[0]));
  });
}

TEST(PreMulSum, belongs_to_one_type_and_one_communicator) {
  ncclComm_t comm = nullptr;
  ncclComm_t other = nullptr;
  ASSERT_EQ(ncclCommInitRank(&comm, 1, new_unique_id(), 0), ncclSuccess);
  ASSERT_EQ(ncclCommInitRank(&other, 1, new_unique_id(), 0), ncclSuccess);
  {
    TestStream stream;
    double data = 1;
    float factor = 2;
    ncclRedOp_t op;
    ASSERT_EQ(ncclRedOpCreatePreMulSum(&op, &factor, ncclFloat32, ncclScalarHostImmediate, comm),
              ncclSuccess);
    EXPECT_GE(op, ncclNumOps);
    EXPECT_EQ(ncclAllReduce(&data, &data, 1, ncclFloat64, op, comm, stream), ncclInvalidArgument);
    EXPECT_TRUE(
        contains(last_error(), "Data type supplied to user-created ncclRedOp_t does not match"))
        << last_error();
    EXPECT_EQ(ncclAllReduce(&data, &data, 1, ncclFloat32, op, other, stream), ncclInvalidArgument);
    EXPECT_EQ(ncclRedOpDestroy(op, other), ncclInvalidArgument);
    EXPECT_EQ(ncclRedOpDestroy(op, comm), ncclSuccess);
    EXPECT_EQ(ncclRedOpDestroy(op, comm), ncclInvalidArgument);
    EXPECT_EQ(ncclRedOpDestroy(ncclSum, comm), ncclInvalidArgument);
    EXPECT_EQ(ncclAllReduce(&data, &data, 1, ncclFloat32, op, comm, stream), ncclInvalidArgument);
    EXPECT_EQ(
        ncclRedOpCreatePreMulSum(nullptr, &factor, ncclFloat32, ncclScalarHostImmediate, comm),
        ncclInvalidArgument);
    EXPECT_EQ(ncclRedOpCreatePreMulSum(&op, nullptr, ncclFloat32, ncclScalarHostImmediate, comm),
              ncclInvalidArgument);
  }
  EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
  EXPECT_EQ(ncclCommDestroy(other), ncclSuccess);
}

TEST(Average, of_integers_truncates_the_sum) {
  run_crew(3, [](Seat& seat) {
    // Sums 7 and -7, which 3 divides to 2 and -2.
    std::vector<std::int32_t> data = {seat.rank == 0 ? 5 : 1, seat.rank == 0 ? -5 : -1};
    require_success(
        ncclAllReduce(data.data(), data.data(), 2, ncclInt32, ncclAvg, seat.comm, seat.stream),
        "avg");
    seat.finish();
    require(data == std::vector<std::int32_t>({2, -2}), "got " + std::to_string(data[0]));
  });
}

TEST(Average, of_floats_multiplies_each_input_by_the_rounded_reciprocal) {
  run_crew(3, [](Seat& seat) {
    const float third = 1.0f / 3.0f;
    // 3 * (1/3 rounded) of equal inputs: products round once each, the sum of three once or twice.
    std::vector<float> data(1000, 1e6f);
    require_success(ncclAllReduce(data.data(), data.data(), data.size(), ncclFloat32, ncclAvg,
                                  seat.comm, seat.stream),
                    "avg");
    seat.finish();
    const float product = 1e6f * third;
    const float expected = (product + product) + product;
    for (const float value : data) {
      require(value == expected, [&] { return "got " + std::to_string(value); });
    }
  });
}

TEST(Average, of_floats_does_not_overflow_where_the_sum_would) {
  run_crew(4, [](Seat& seat) {
    std::vector<float> data(100, 3e38f);
    require_success(ncclAllReduce(data.data(), data.data(), data.size(), ncclFloat32, ncclAvg,
                                  seat.comm, seat.stream),
                    "avg");
    seat.finish();
    require(data == std::vector<float>(100, 3e38f), "got " + std::to_string(data[0]));
  });
}

// ctest runs this for each algorithm.
TEST(Determinism, all_ranks_and_all_runs_get_the_same_bits) {
  for (const int nranks : {2, 3, 4, 5}) {
    for (const std::size_t count : {1, 33, 1000, 40000, 300001}) {
      std::mutex mutex;
      std::vector<float> reference;
      run_crew(nranks, [&](Seat& seat) {
        std::mt19937 random(static_cast<unsigned>(seat.rank + 1));
        std::uniform_real_distribution<float> wide(-20, 20);
        std::vector<float> input(count);
        for (float& value : input)
          value = std::exp(wide(random)) * (random() % 2 == 0 ? 1.0f : -1.0f);
        for (int run = 0; run < 3; ++run) {
          std::vector<float> output(count);
          // Different timing each run.
          if (run == 1) std::this_thread::sleep_for(std::chrono::milliseconds(seat.rank * 2));
          require_success(ncclAllReduce(input.data(), output.data(), count, ncclFloat32, ncclSum,
                                        seat.comm, seat.stream),
                          "AllReduce");
          seat.finish();
          const std::lock_guard lock(mutex);
          if (reference.empty()) reference = output;
          require(
              std::memcmp(reference.data(), output.data(), count * sizeof(float)) == 0,
              "bits differ: ranks " + std::to_string(nranks) + " count " + std::to_string(count));
        }
      });
    }
  }
}

}  // namespace
}  // namespace catenary::testing
