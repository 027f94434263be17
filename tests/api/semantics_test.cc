// What NCCL's users rely on: groups, arguments, order, and the small print of single operations.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <vector>

#include "tests/support/crew.h"
#include "tests/support/rank_group.h"

namespace catenary::testing {
namespace {

// One rank alone, for rules that need no peer.
class Alone : public ::testing::Test {
 protected:
  Alone() { require_success(ncclCommInitRank(&comm_, 1, new_unique_id(), 0), "ncclCommInitRank"); }
  ~Alone() override { ncclCommDestroy(comm_); }

  ncclResult_t sum(float* data, std::size_t count) {
    return ncclAllReduce(data, data, count, ncclFloat32, ncclSum, comm_, stream_);
  }

  ncclComm_t comm_ = nullptr;
  TestStream stream_;
};

// ---- Groups. ----

TEST(Group, end_without_start_is_invalid_usage) {
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
  EXPECT_TRUE(contains(last_error(), "not in a group call")) << last_error();
}

TEST(Group, an_empty_one_is_fine_and_nests) {
  for (int i = 0; i < 3; ++i) ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
}

TEST(Group, depth_belongs_to_the_thread) {
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  run_side_by_side(1, [](int) { require_result(ncclGroupEnd(), ncclInvalidUsage, "end in another thread"); });
  EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
}

TEST_F(Alone, nothing_is_launched_before_the_outermost_end) {
  float from = 3;
  float to = 0;
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  ASSERT_EQ(ncclAllReduce(&from, &to, 1, ncclFloat32, ncclSum, comm_, stream_), ncclSuccess);
  ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
  stream_.finish();
  EXPECT_EQ(to, 0);
  ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
  stream_.finish();
  EXPECT_EQ(to, 3);
}

TEST_F(Alone, an_argument_error_is_returned_at_once_and_again_by_the_end_and_nothing_is_launched) {
  float from = 3;
  float to = 0;
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  ASSERT_EQ(ncclAllReduce(&from, &to, 1, ncclFloat32, ncclSum, comm_, stream_), ncclSuccess);
  EXPECT_EQ(ncclBroadcast(&from, &to, 1, ncclFloat32, 7, comm_, stream_), ncclInvalidArgument);
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidArgument);
  stream_.finish();
  EXPECT_EQ(to, 0);
  // The group is over, the communicator is as good as before.
  EXPECT_EQ(sum(&from, 1), ncclSuccess);
  stream_.finish();
}

TEST_F(Alone, an_error_in_a_nested_group_is_kept_for_the_outermost_end) {
  float data = 1;
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  EXPECT_EQ(ncclReduce(&data, &data, 1, ncclFloat32, ncclSum, -1, comm_, stream_), ncclInvalidArgument);
  ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidArgument);
}

TEST(Group, a_failing_init_in_it_leaves_no_group_open) {
  ncclComm_t comms[2] = {nullptr, nullptr};
  const int devices[2] = {0, 1 << 20};
  EXPECT_NE(ncclCommInitAll(comms, 2, devices), ncclSuccess);
  EXPECT_EQ(comms[0], nullptr);
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage) << "a group was left open";
}

TEST(Group, one_that_cannot_be_submitted_in_part_is_not_submitted_at_all) {
  ncclComm_t comms[2];
  ASSERT_EQ(ncclCommInitAll(comms, 2, nullptr), ncclSuccess);
  ncclComm_t other = nullptr;
  ASSERT_EQ(ncclCommInitRank(&other, 1, new_unique_id(), 0), ncclSuccess);
  {
    TestStream stream;
    float from = 4;
    float to = 0;
    ASSERT_EQ(ncclGroupStart(), ncclSuccess);
    ASSERT_EQ(ncclAllReduce(&from, &to, 1, ncclFloat32, ncclSum, other, stream), ncclSuccess);
    ASSERT_EQ(ncclSend(&from, 1, ncclFloat32, 0, comms[0], stream), ncclSuccess);
    EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
    stream.finish();
    EXPECT_EQ(to, 0);
  }
  for (ncclComm_t comm : {comms[0], comms[1], other}) EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
}

TEST(Group, many_communicators_are_driven_by_one_thread) {
  constexpr int kRanks = 4;
  ncclComm_t comms[kRanks];
  ASSERT_EQ(ncclCommInitAll(comms, kRanks, nullptr), ncclSuccess);
  catStream_t streams[kRanks];
  std::vector<std::vector<float>> data(kRanks);
  for (int rank = 0; rank < kRanks; ++rank) {
    ASSERT_EQ(catSetDevice(rank), catSuccess);
    ASSERT_EQ(catStreamCreate(&streams[rank]), catSuccess);
    data[static_cast<std::size_t>(rank)].assign(100000, static_cast<float>(rank + 1));
  }
  for (int round = 0; round < 3; ++round) {
    ASSERT_EQ(ncclGroupStart(), ncclSuccess);
    for (int rank = 0; rank < kRanks; ++rank) {
      float* mine = data[static_cast<std::size_t>(rank)].data();
      ASSERT_EQ(ncclAllReduce(mine, mine, 100000, ncclFloat32, ncclMax, comms[rank], streams[rank]), ncclSuccess);
    }
    ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
  }
  for (int rank = 0; rank < kRanks; ++rank) {
    ASSERT_EQ(catStreamSynchronize(streams[rank]), catSuccess);
    EXPECT_EQ(data[static_cast<std::size_t>(rank)], std::vector<float>(100000, kRanks));
    EXPECT_EQ(ncclCommDestroy(comms[rank]), ncclSuccess);
    EXPECT_EQ(catStreamDestroy(streams[rank]), catSuccess);
  }
  ASSERT_EQ(catSetDevice(0), catSuccess);
}

TEST(Group, many_small_collectives_are_aggregated) {
  run_crew(3, [](Seat& seat) {
    constexpr int kOperations = 64;
    std::vector<std::int32_t> data(kOperations);
    std::iota(data.begin(), data.end(), seat.rank);
    require_success(ncclGroupStart(), "start");
    for (std::int32_t& element : data) {
      require_success(ncclAllReduce(&element, &element, 1, ncclInt32, ncclSum, seat.comm, seat.stream), "op");
    }
    require_success(ncclGroupEnd(), "end");
    seat.finish();
    for (int i = 0; i < kOperations; ++i) {
      require(data[static_cast<std::size_t>(i)] == 3 * i + 3, "element " + std::to_string(i));
    }
  });
}

TEST(Group, different_collectives_go_together) {
  run_crew(3, [](Seat& seat) {
    std::vector<float> sums(5000, 1);
    std::vector<float> root(70000, static_cast<float>(seat.rank));
    std::vector<float> all(3 * 1000, static_cast<float>(seat.rank));
    require_success(ncclGroupStart(), "start");
    require_success(ncclAllReduce(sums.data(), sums.data(), sums.size(), ncclFloat32, ncclSum, seat.comm,
                                  seat.stream), "AllReduce");
    require_success(ncclBcast(root.data(), root.size(), ncclFloat32, 2, seat.comm, seat.stream), "Bcast");
    require_success(ncclAllGather(all.data() + seat.rank * 1000, all.data(), 1000, ncclFloat32, seat.comm,
                                  seat.stream), "AllGather");
    require_success(ncclGroupEnd(), "end");
    seat.finish();
    require(sums == std::vector<float>(5000, 3), "AllReduce");
    require(root == std::vector<float>(70000, 2), "Bcast");
    for (std::size_t i = 0; i < all.size(); ++i) require(all[i] == static_cast<float>(i / 1000), "AllGather");
  });
}

TEST(Group, operations_of_several_streams_wait_for_each_other) {
  run_crew(2, [](Seat& seat) {
    constexpr std::size_t kCount = 100000;
    TestStream other;
    std::vector<float> a(kCount, 0);
    std::vector<float> b(kCount, 0);
    std::vector<float> copy(kCount, 0);
    // The memset of each stream is before the whole group, the copies after all of it.
    require(catMemsetAsync(a.data(), 0, kCount * 4, seat.stream) == catSuccess, "memset");
    std::vector<float> ones(kCount, 1);
    require(catMemcpyAsync(b.data(), ones.data(), kCount * 4, other) == catSuccess, "memcpy");
    require_success(ncclGroupStart(), "start");
    require_success(ncclAllReduce(b.data(), a.data(), kCount, ncclFloat32, ncclSum, seat.comm, seat.stream), "a");
    require_success(ncclAllReduce(ones.data(), ones.data(), kCount, ncclFloat32, ncclSum, seat.comm, other), "b");
    require_success(ncclGroupEnd(), "end");
    require(catMemcpyAsync(copy.data(), a.data(), kCount * 4, other) == catSuccess, "memcpy");
    other.finish();
    require(copy == std::vector<float>(kCount, 2), "the other stream did not wait for the group");
    seat.finish();
  });
}

// ---- Point to point. ----

TEST(PointToPoint, a_grouped_exchange_longer_than_any_link_does_not_deadlock) {
  run_crew(4, [](Seat& seat) {
    constexpr std::size_t kCount = 3 << 20;  // many times what the slots of a link hold
    const auto n = static_cast<std::size_t>(seat.nranks);
    std::vector<std::uint8_t> out(kCount, static_cast<std::uint8_t>(seat.rank + 1));
    std::vector<std::vector<std::uint8_t>> in(n, std::vector<std::uint8_t>(kCount, 0));
    require_success(ncclGroupStart(), "start");
    // All sends first: outside of a group this order would wait for ever.
    for (int peer = 0; peer < seat.nranks; ++peer) {
      require_success(ncclSend(out.data(), kCount, ncclUint8, peer, seat.comm, seat.stream), "send");
    }
    for (int peer = seat.nranks - 1; peer >= 0; --peer) {
      require_success(ncclRecv(in[static_cast<std::size_t>(peer)].data(), kCount, ncclUint8, peer, seat.comm,
                               seat.stream), "recv");
    }
    require_success(ncclGroupEnd(), "end");
    seat.finish();
    for (std::size_t peer = 0; peer < n; ++peer) {
      require(in[peer] == std::vector<std::uint8_t>(kCount, static_cast<std::uint8_t>(peer + 1)), "bytes");
    }
  });
}

TEST(PointToPoint, messages_to_one_peer_match_in_the_order_of_issue) {
  run_crew(2, [](Seat& seat) {
    constexpr int kMessages = 40;
    std::vector<std::int32_t> out(kMessages);
    std::iota(out.begin(), out.end(), 100 * seat.rank);
    std::vector<std::int32_t> in(kMessages, -1);
    require_success(ncclGroupStart(), "start");
    for (int i = 0; i < kMessages; ++i) {
      const auto at = static_cast<std::size_t>(i);
      require_success(ncclRecv(&in[at], 1, ncclInt32, 1 - seat.rank, seat.comm, seat.stream), "recv");
      require_success(ncclSend(&out[at], 1, ncclInt32, 1 - seat.rank, seat.comm, seat.stream), "send");
    }
    require_success(ncclGroupEnd(), "end");
    seat.finish();
    for (int i = 0; i < kMessages; ++i) {
      require(in[static_cast<std::size_t>(i)] == 100 * (1 - seat.rank) + i, "message " + std::to_string(i));
    }
  });
}

TEST(PointToPoint, messages_of_no_bytes_are_legal_and_match) {
  run_crew(2, [](Seat& seat) {
    std::int32_t value = seat.rank;
    std::int32_t got = -1;
    require_success(ncclGroupStart(), "start");
    require_success(ncclSend(nullptr, 0, ncclInt32, 1 - seat.rank, seat.comm, seat.stream), "send nothing");
    require_success(ncclSend(&value, 1, ncclInt32, 1 - seat.rank, seat.comm, seat.stream), "send");
    require_success(ncclRecv(nullptr, 0, ncclInt32, 1 - seat.rank, seat.comm, seat.stream), "recv nothing");
    require_success(ncclRecv(&got, 1, ncclInt32, 1 - seat.rank, seat.comm, seat.stream), "recv");
    require_success(ncclGroupEnd(), "end");
    seat.finish();
    require(got == 1 - seat.rank, "the message after the empty one");
  });
}

TEST(PointToPoint, collectives_and_messages_share_a_group) {
  run_crew(3, [](Seat& seat) {
    float sum = 1;
    const std::int32_t out = seat.rank;
    std::int32_t in = -1;
    require_success(ncclGroupStart(), "start");
    require_success(ncclSend(&out, 1, ncclInt32, seat.next(), seat.comm, seat.stream), "send");
    require_success(ncclAllReduce(&sum, &sum, 1, ncclFloat32, ncclSum, seat.comm, seat.stream), "sum");
    require_success(ncclRecv(&in, 1, ncclInt32, seat.previous(), seat.comm, seat.stream), "recv");
    require_success(ncclGroupEnd(), "end");
    seat.finish();
    require(sum == 3 && in == seat.previous(), "results");
  });
}

TEST_F(Alone, a_message_to_oneself_arrives_when_matched_in_its_group) {
  std::vector<float> out(200000, 5);
  std::vector<float> in(200000, 0);
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  ASSERT_EQ(ncclSend(out.data(), out.size(), ncclFloat32, 0, comm_, stream_), ncclSuccess);
  ASSERT_EQ(ncclRecv(in.data(), in.size(), ncclFloat32, 0, comm_, stream_), ncclSuccess);
  ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
  stream_.finish();
  EXPECT_EQ(in, out);
}

TEST_F(Alone, a_message_to_oneself_without_a_match_is_invalid_usage) {
  float data = 0;
  EXPECT_EQ(ncclSend(&data, 1, ncclFloat32, 0, comm_, stream_), ncclInvalidUsage);
  EXPECT_TRUE(contains(last_error(), "Trying to send to self without a matching recv")) << last_error();
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  EXPECT_EQ(ncclRecv(&data, 1, ncclFloat32, 0, comm_, stream_), ncclSuccess);
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
}

// ---- Arguments. ----

TEST_F(Alone, bad_arguments_are_refused_by_name) {
  float data = 0;
  const auto refused = [&](ncclResult_t result, const char* text) {
    EXPECT_EQ(result, ncclInvalidArgument) << text;
    EXPECT_TRUE(contains(last_error(), text)) << last_error() << "\nlacks: " << text;
  };
  refused(ncclAllReduce(&data, &data, 1, ncclFloat32, ncclSum, nullptr, stream_), "comm argument is NULL");
  refused(ncclAllReduce(nullptr, &data, 1, ncclFloat32, ncclSum, comm_, stream_), "sendbuff argument is NULL");
  refused(ncclAllReduce(&data, nullptr, 1, ncclFloat32, ncclSum, comm_, stream_), "recvbuff argument is NULL");
  refused(ncclAllReduce(&data, &data, 1, ncclNumTypes, ncclSum, comm_, stream_), "invalid type 12");
  refused(ncclAllReduce(&data, &data, 1, ncclFloat32, ncclNumOps, comm_, stream_),
          "invalid reduction operation 5");
  refused(ncclAllReduce(&data, &data, 1, ncclFloat32, ncclMaxRedOp, comm_, stream_),
          "invalid reduction operation");
  refused(ncclReduce(&data, &data, 1, ncclFloat32, ncclSum, 1, comm_, stream_),
          "invalid root 1 (root should be in the 0..0 range)");
  refused(ncclBroadcast(&data, &data, 1, ncclFloat32, -1, comm_, stream_), "invalid root -1");
  refused(ncclSend(&data, 1, ncclFloat32, 1, comm_, stream_), "1");
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
  EXPECT_EQ(ncclAllReduce(&data, &data, 1, ncclFloat32, ncclSum, comm_, elsewhere), ncclInvalidArgument);
  EXPECT_EQ(catStreamDestroy(elsewhere), catSuccess);
}

// ---- Single operations. ----

TEST_F(Alone, one_rank_copies_scales_and_averages) {
  std::vector<float> from(5000, 6);
  std::vector<float> to(5000, 0);
  ASSERT_EQ(ncclAllReduce(from.data(), to.data(), from.size(), ncclFloat32, ncclAvg, comm_, stream_), ncclSuccess);
  stream_.finish();
  EXPECT_EQ(to, from);
  float factor = 0.5f;
  ncclRedOp_t half;
  ASSERT_EQ(ncclRedOpCreatePreMulSum(&half, &factor, ncclFloat32, ncclScalarHostImmediate, comm_), ncclSuccess);
  ASSERT_EQ(ncclReduceScatter(from.data(), to.data(), from.size(), ncclFloat32, half, comm_, stream_), ncclSuccess);
  ASSERT_EQ(ncclAllReduce(from.data(), from.data(), from.size(), ncclFloat32, half, comm_, stream_), ncclSuccess);
  stream_.finish();
  EXPECT_EQ(to, std::vector<float>(5000, 3));
  EXPECT_EQ(from, std::vector<float>(5000, 3));
  EXPECT_EQ(ncclRedOpDestroy(half, comm_), ncclSuccess);
}

TEST(Collective, of_nothing_is_not_even_a_barrier) {
  run_crew(2, [](Seat& seat) {
    // Only rank 0 calls; nobody may wait for anybody.
    if (seat.rank == 0) {
      require_success(ncclAllReduce(nullptr, nullptr, 0, ncclFloat32, ncclSum, seat.comm, seat.stream), "AllReduce");
      require_success(ncclAllGather(nullptr, nullptr, 0, ncclFloat32, seat.comm, seat.stream), "AllGather");
      require_success(ncclBroadcast(nullptr, nullptr, 0, ncclFloat32, 1, seat.comm, seat.stream), "Broadcast");
      seat.finish();
    }
    float one = 1;
    require_success(ncclAllReduce(&one, &one, 1, ncclFloat32, ncclSum, seat.comm, seat.stream), "AllReduce");
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
    require_success(ncclReduce(&value, root ? &sum : nullptr, 1, ncclFloat32, ncclSum, 1, seat.comm, seat.stream),
                    "Reduce");
    require_success(ncclBroadcast(root ? &value : nullptr, &value, 1, ncclFloat32, 1, seat.comm, seat.stream),
                    "Broadcast");
    require_success(ncclGather(&value, root ? all.data() : nullptr, 1, ncclFloat32, 1, seat.comm, seat.stream),
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
        require_success(ncclAllReduce(out.data() + shift, in.data() + shift + 1, count, ncclFloat16, ncclSum,
                                      seat.comm, seat.stream), "AllReduce");
        seat.finish();
        for (std::size_t i = 0; i < in.size(); ++i) {
          const bool inside = i > shift && i <= shift + count;
          require(in[i] == (inside ? 0x4200 : 0xffff), "element " + std::to_string(i));  // fp16 three
        }
      }
    }
  });
}

// NCCL documents this as a deadlock: finite device resources. Here every operation in flight is polled.
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
        return ncclAllReduce(a.data(), a.data(), kCount, ncclFloat32, ncclSum, seat.comm, seat.stream);
      };
      const auto second_op = [&] {
        return ncclAllReduce(b.data(), b.data(), kCount, ncclFloat32, ncclSum, second, other);
      };
      for (int i = 0; i < 3; ++i) {
        require_success(seat.rank == 0 ? first_op() : second_op(), "one");
        // What is enqueued first is waited for before the other is even enqueued on one of the ranks.
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
      require_success(ncclAllReduce(a.data(), a.data(), a.size(), ncclFloat32, ncclSum, seat.comm, seat.stream), "a");
      require_success(ncclAllReduce(b.data(), b.data(), b.size(), ncclFloat32, ncclSum, seat.comm, other), "b");
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
  EXPECT_STREQ(ncclGetErrorString(ncclSystemError), "unhandled system error (run with NCCL_DEBUG=INFO for details)");
  EXPECT_STREQ(ncclGetErrorString(ncclInternalError),
               "internal error - please report this issue to the NCCL developers");
  EXPECT_STREQ(ncclGetErrorString(ncclInvalidArgument), "invalid argument (run with NCCL_DEBUG=WARN for details)");
  EXPECT_STREQ(ncclGetErrorString(ncclInvalidUsage), "invalid usage (run with NCCL_DEBUG=WARN for details)");
  EXPECT_STREQ(ncclGetErrorString(ncclRemoteError), "remote process exited or there was a network error");
  EXPECT_STREQ(ncclGetErrorString(ncclInProgress), "NCCL operation in progress");
  EXPECT_STREQ(ncclGetErrorString(ncclNumResults), "unknown result code");
}

}  // namespace
}  // namespace catenary::testing
