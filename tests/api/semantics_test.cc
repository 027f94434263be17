// What NCCL's users rely on: arguments, order, and the small print of single operations.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "tests/support/alone.h"
#include "tests/support/crew.h"
#include "tests/support/rank_group.h"

namespace catenary::testing {
namespace {

// ---- Arguments. ----

TEST_F(Alone, bad_arguments_are_refused_by_name) {
  float data = 0;
  const auto refused = [&](ncclResult_t result, const char* text) {
    EXPECT_EQ(result, ncclInvalidArgument) << text;
    EXPECT_TRUE(contains(last_error(), text)) << last_error() << "\nlacks: " << text;
  };
  refused(ncclAllReduce(&data, &data, 1, ncclFloat32, ncclSum, nullptr, stream_),
          "comm argument is NULL");
  refused(ncclAllReduce(nullptr, &data, 1, ncclFloat32, ncclSum, comm_, stream_),
          "sendbuff argument is NULL");
  refused(ncclAllReduce(&data, nullptr, 1, ncclFloat32, ncclSum, comm_, stream_),
          "recvbuff argument is NULL");
  refused(ncclAllReduce(&data, &data, 1, ncclNumTypes, ncclSum, comm_, stream_), "invalid type 12");
  refused(ncclAllReduce(&data, &data, 1, ncclFloat32, ncclNumOps, comm_, stream_),
          "invalid reduction operation 5");
  refused(ncclAllReduce(&data, &data, 1, ncclFloat32, ncclMaxRedOp, comm_, stream_),
          "invalid reduction operation");
  refused(ncclReduce(&data, &data, 1, ncclFloat32, ncclSum, 1, comm_, stream_),
          "invalid root 1 (root should be in the 0..0 range)");
  refused(ncclBroadcast(&data, &data, 1, ncclFloat32, -1, comm_, stream_), "invalid root -1");
  refused(ncclSend(&data, 1, ncclFloat32, 1, comm_, stream_),
          "invalid peer 1 (peer should be in the 0..0 range)");
  ncclUniqueId id = {};
  ncclComm_t none = nullptr;
  refused(ncclCommInitRank(&none, 0, id, 0), "invalid number of ranks 0");
  refused(ncclCommInitRank(&none, 2, id, 2), "invalid rank 2 (rank should be in the 0..1 range)");
  refused(ncclGetUniqueId(nullptr), "uniqueId argument is NULL");
  refused(ncclGetVersion(nullptr), "version argument is NULL");
  refused(ncclCommCount(comm_, nullptr), "count argument is NULL");
  refused(ncclCommUserRank(nullptr, nullptr), "comm argument is NULL");
  EXPECT_EQ(sum(&data, 1), ncclSuccess) << "after argument errors the communicator stays usable";
  stream_.finish();
}

TEST_F(Alone, counts_that_no_memory_holds_are_refused) {
  float data = 0;
  for (const std::size_t count : {SIZE_MAX, SIZE_MAX / 2, SIZE_MAX / 4 + 1}) {
    EXPECT_EQ(sum(&data, count), ncclInvalidArgument) << count;
    EXPECT_EQ(ncclSend(&data, count, ncclFloat32, 0, comm_, stream_), ncclInvalidArgument) << count;
  }
}

TEST_F(Alone, a_stream_that_was_destroyed_is_refused) {
  catStream_t gone = nullptr;
  ASSERT_EQ(catStreamCreate(&gone), catSuccess);
  ASSERT_EQ(catStreamDestroy(gone), catSuccess);
  float data = 0;
  EXPECT_EQ(ncclAllReduce(&data, &data, 1, ncclFloat32, ncclSum, comm_, gone), ncclInvalidArgument);
}

TEST_F(Alone, a_stream_of_another_device_is_refused) {
  catStream_t elsewhere = nullptr;
  ASSERT_EQ(catSetDevice(1), catSuccess);
  ASSERT_EQ(catStreamCreate(&elsewhere), catSuccess);
  ASSERT_EQ(catSetDevice(0), catSuccess);
  float data = 0;
  EXPECT_EQ(ncclAllReduce(&data, &data, 1, ncclFloat32, ncclSum, comm_, elsewhere),
            ncclInvalidArgument);
  EXPECT_EQ(catStreamDestroy(elsewhere), catSuccess);
}

// ---- Single operations. ----

TEST_F(Alone, one_rank_copies_scales_and_averages) {
  std::vector<float> from(5000, 6);
  std::vector<float> to(5000, 0);
  ASSERT_EQ(
      ncclAllReduce(from.data(), to.data(), from.size(), ncclFloat32, ncclAvg, comm_, stream_),
      ncclSuccess);
  stream_.finish();
  EXPECT_EQ(to, from);
  float factor = 0.5f;
  ncclRedOp_t half;
  ASSERT_EQ(ncclRedOpCreatePreMulSum(&half, &factor, ncclFloat32, ncclScalarHostImmediate, comm_),
            ncclSuccess);
  ASSERT_EQ(
      ncclReduceScatter(from.data(), to.data(), from.size(), ncclFloat32, half, comm_, stream_),
      ncclSuccess);
  ASSERT_EQ(ncclAllReduce(from.data(), from.data(), from.size(), ncclFloat32, half, comm_, stream_),
            ncclSuccess);
  stream_.finish();
  EXPECT_EQ(to, std::vector<float>(5000, 3));
  EXPECT_EQ(from, std::vector<float>(5000, 3));
  EXPECT_EQ(ncclRedOpDestroy(half, comm_), ncclSuccess);
}

TEST(Collective, of_nothing_is_not_even_a_barrier) {
  run_crew(2, [](Seat& seat) {
    // Only rank 0 calls; nobody may wait for anybody.
    if (seat.rank == 0) {
      require_success(
          ncclAllReduce(nullptr, nullptr, 0, ncclFloat32, ncclSum, seat.comm, seat.stream),
          "AllReduce");
      require_success(ncclAllGather(nullptr, nullptr, 0, ncclFloat32, seat.comm, seat.stream),
                      "AllGather");
      require_success(ncclBroadcast(nullptr, nullptr, 0, ncclFloat32, 1, seat.comm, seat.stream),
                      "Broadcast");
      seat.finish();
    }
    float one = 1;
    require_success(ncclAllReduce(&one, &one, 1, ncclFloat32, ncclSum, seat.comm, seat.stream),
                    "AllReduce");
    seat.finish();
    require(one == 2, "the sum after nothing");
  });
}

TEST(Collective, buffers_that_a_rank_does_not_use_may_be_null) {
  run_crew(3, [](Seat& seat) {
    const bool root = seat.rank == 1;
    float value = static_cast<float>(seat.rank);
    float sum = -1;
    std::vector<float> all(3, 7);
    require_success(ncclReduce(&value, root ? &sum : nullptr, 1, ncclFloat32, ncclSum, 1, seat.comm,
                               seat.stream),
                    "Reduce");
    require_success(
        ncclBroadcast(root ? &value : nullptr, &value, 1, ncclFloat32, 1, seat.comm, seat.stream),
        "Broadcast");
    require_success(
        ncclGather(&value, root ? all.data() : nullptr, 1, ncclFloat32, 1, seat.comm, seat.stream),
        "Gather");
    seat.finish();
    require(value == 1, "Broadcast");
    if (root) require(sum == 3 && all == std::vector<float>(3, 1), "Reduce and Gather");
  });
}

TEST(Collective, buffers_need_no_more_alignment_than_an_element) {
  run_crew(3, [](Seat& seat) {
    for (const std::size_t count : {1, 17, 1000, 50001}) {
      for (std::size_t shift = 0; shift < 16; shift += 5) {
        std::vector<std::uint16_t> out(count + 32, static_cast<std::uint16_t>(0x3c00));  // fp16 one
        std::vector<std::uint16_t> in(count + 32, 0xffff);
        require_success(ncclAllReduce(out.data() + shift, in.data() + shift + 1, count, ncclFloat16,
                                      ncclSum, seat.comm, seat.stream),
                        "AllReduce");
        seat.finish();
        for (std::size_t i = 0; i < in.size(); ++i) {
          const bool inside = i > shift && i <= shift + count;
          require(in[i] == (inside ? 0x4200 : 0xffff),
                  [&] { return "element " + std::to_string(i); });  // fp16 three
        }
      }
    }
  });
}

// NCCL documents this as a deadlock: finite device resources. Here every operation in flight is
// polled.
TEST(Collective, communicators_of_one_device_do_not_hold_each_other_up) {
  const ncclUniqueId id = new_unique_id();
  run_crew(2, [&](Seat& seat) {
    ncclComm_t second = nullptr;
    require_success(ncclCommInitRank(&second, seat.nranks, id, seat.rank), "second communicator");
    {
      TestStream other;
      constexpr std::size_t kCount = 1 << 20;
      std::vector<float> a(kCount, 1);
      std::vector<float> b(kCount, 2);
      const auto first_op = [&] {
        return ncclAllReduce(a.data(), a.data(), kCount, ncclFloat32, ncclSum, seat.comm,
                             seat.stream);
      };
      const auto second_op = [&] {
        return ncclAllReduce(b.data(), b.data(), kCount, ncclFloat32, ncclSum, second, other);
      };
      for (int i = 0; i < 3; ++i) {
        require_success(seat.rank == 0 ? first_op() : second_op(), "one");
        // What is enqueued first is waited for before the other is even enqueued on one of the
        // ranks.
        require_success(seat.rank == 0 ? second_op() : first_op(), "other");
      }
      seat.finish();
      other.finish();
      require(a == std::vector<float>(kCount, 8) && b == std::vector<float>(kCount, 16), "sums");
    }
    require_success(ncclCommDestroy(second), "ncclCommDestroy");
  });
}

TEST(Collective, streams_of_one_communicator_keep_the_order_of_issue) {
  run_crew(2, [](Seat& seat) {
    TestStream other;
    std::vector<float> a(300000, 1);
    std::vector<float> b(300000, 1);
    for (int i = 0; i < 4; ++i) {
      require_success(
          ncclAllReduce(a.data(), a.data(), a.size(), ncclFloat32, ncclSum, seat.comm, seat.stream),
          "a");
      require_success(
          ncclAllReduce(b.data(), b.data(), b.size(), ncclFloat32, ncclSum, seat.comm, other), "b");
    }
    other.finish();
    seat.finish();
    require(a == std::vector<float>(300000, 16) && b == a, "sums");
  });
}

TEST(ErrorString, texts_are_those_that_programs_look_for) {
  EXPECT_STREQ(ncclGetErrorString(ncclSuccess), "no error");
  EXPECT_STREQ(ncclGetErrorString(ncclUnhandledCudaError),
               "unhandled cuda error (run with NCCL_DEBUG=INFO for details)");
  EXPECT_STREQ(ncclGetErrorString(ncclSystemError),
               "unhandled system error (run with NCCL_DEBUG=INFO for details)");
  EXPECT_STREQ(ncclGetErrorString(ncclInternalError),
               "internal error - please report this issue to the NCCL developers");
  EXPECT_STREQ(ncclGetErrorString(ncclInvalidArgument),
               "invalid argument (run with NCCL_DEBUG=WARN for details)");
  EXPECT_STREQ(ncclGetErrorString(ncclInvalidUsage),
               "invalid usage (run with NCCL_DEBUG=WARN for details)");
  EXPECT_STREQ(ncclGetErrorString(ncclRemoteError),
               "remote process exited or there was a network error");
  EXPECT_STREQ(ncclGetErrorString(ncclInProgress), "NCCL operation in progress");
  EXPECT_STREQ(ncclGetErrorString(ncclNumResults), "unknown result code");
}

}  // namespace
}  // namespace catenary::testing
