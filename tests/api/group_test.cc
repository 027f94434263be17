// Groups, and the messages that need them.
#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "tests/support/alone.h"
#include "tests/support/crew.h"
#include "tests/support/rank_group.h"

namespace catenary::testing {
namespace {

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
  run_side_by_side(
      1, [](int) { require_result(ncclGroupEnd(), ncclInvalidUsage, "end in another thread"); });
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

// ---- Simulated groups. ----

float simulated_us(ncclComm_t comm, catStream_t stream, std::size_t count, int calls) {
  std::vector<float> data(count);
  ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
  EXPECT_EQ(ncclGroupStart(), ncclSuccess);
  for (int i = 0; i < calls; ++i) {
    EXPECT_EQ(ncclAllReduce(data.data(), data.data(), count, ncclFloat32, ncclSum, comm, stream),
              ncclSuccess);
  }
  EXPECT_EQ(ncclGroupSimulateEnd(&info), ncclSuccess);
  return info.estimatedTime;
}

TEST_F(Alone, a_simulated_group_runs_nothing_and_tells_microseconds) {
  float from = 3;
  float to = 0;
  ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  ASSERT_EQ(ncclAllReduce(&from, &to, 1, ncclFloat32, ncclSum, comm_, stream_), ncclSuccess);
  ASSERT_EQ(ncclGroupSimulateEnd(&info), ncclSuccess);
  stream_.finish();
  EXPECT_EQ(to, 0);
  EXPECT_GT(info.estimatedTime, 0);
  EXPECT_LT(info.estimatedTime, 1e6);
  const float one = simulated_us(comm_, stream_, 1000, 1);
  EXPECT_FLOAT_EQ(simulated_us(comm_, stream_, 1000, 3), 3 * one);
  EXPECT_GT(simulated_us(comm_, stream_, 10'000'000, 1), one);
  EXPECT_EQ(sum(&from, 1), ncclSuccess);  // as good as before
  stream_.finish();
}

TEST_F(Alone, only_the_outermost_end_simulates) {
  float data = 3;
  ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
  info.estimatedTime = -7;
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  ASSERT_EQ(ncclAllReduce(&data, &data, 1, ncclFloat32, ncclSum, comm_, stream_), ncclSuccess);
  ASSERT_EQ(ncclGroupSimulateEnd(&info), ncclSuccess);
  EXPECT_EQ(info.estimatedTime, -7);
  ASSERT_EQ(ncclGroupSimulateEnd(&info), ncclSuccess);
  EXPECT_GT(info.estimatedTime, 0);
}

TEST_F(Alone, a_simulation_needs_a_group_and_its_structure) {
  ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
  EXPECT_EQ(ncclGroupSimulateEnd(&info), ncclInvalidUsage);
  EXPECT_TRUE(contains(last_error(), "ncclGroupSimulateEnd: not in a group")) << last_error();
  info.magic = 1;
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  EXPECT_EQ(ncclGroupSimulateEnd(&info), ncclInvalidArgument);
  EXPECT_TRUE(contains(last_error(), "NCCL_SIM_INFO_INITIALIZER")) << last_error();
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);  // it is closed
}

TEST_F(Alone, the_end_of_a_simulation_without_a_structure_is_one_like_any_other) {
  EXPECT_EQ(ncclGroupSimulateEnd(nullptr), ncclInvalidUsage);
  const float from = 3;
  float to = 0;
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  ASSERT_EQ(ncclAllReduce(&from, &to, 1, ncclFloat32, ncclSum, comm_, stream_), ncclSuccess);
  EXPECT_EQ(ncclGroupSimulateEnd(nullptr), ncclSuccess);
  stream_.finish();
  EXPECT_EQ(to, from);
}

TEST_F(Alone, an_error_of_a_simulated_group_is_that_of_its_end) {
  float data = 3;
  ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  EXPECT_EQ(ncclBroadcast(&data, &data, 1, ncclFloat32, 7, comm_, stream_), ncclInvalidArgument);
  EXPECT_EQ(ncclGroupSimulateEnd(&info), ncclInvalidArgument);
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
  EXPECT_EQ(ncclReduce(&data, &data, 1, ncclFloat32, ncclSum, -1, comm_, stream_),
            ncclInvalidArgument);
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
      ASSERT_EQ(ncclAllReduce(mine, mine, 100000, ncclFloat32, ncclMax, comms[rank], streams[rank]),
                ncclSuccess);
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
      require_success(
          ncclAllReduce(&element, &element, 1, ncclInt32, ncclSum, seat.comm, seat.stream), "op");
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
    require_success(ncclAllReduce(sums.data(), sums.data(), sums.size(), ncclFloat32, ncclSum,
                                  seat.comm, seat.stream),
                    "AllReduce");
    require_success(ncclBcast(root.data(), root.size(), ncclFloat32, 2, seat.comm, seat.stream),
                    "Bcast");
    require_success(ncclAllGather(all.data() + seat.rank * 1000, all.data(), 1000, ncclFloat32,
                                  seat.comm, seat.stream),
                    "AllGather");
    require_success(ncclGroupEnd(), "end");
    seat.finish();
    require(sums == std::vector<float>(5000, 3), "AllReduce");
    require(root == std::vector<float>(70000, 2), "Bcast");
    for (std::size_t i = 0; i < all.size(); ++i)
      require(all[i] == static_cast<float>(i / 1000), "AllGather");
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
    require_success(
        ncclAllReduce(b.data(), a.data(), kCount, ncclFloat32, ncclSum, seat.comm, seat.stream),
        "a");
    require_success(
        ncclAllReduce(ones.data(), ones.data(), kCount, ncclFloat32, ncclSum, seat.comm, other),
        "b");
    require_success(ncclGroupEnd(), "end");
    require(catMemcpyAsync(copy.data(), a.data(), kCount * 4, other) == catSuccess, "memcpy");
    other.finish();
    require(copy == std::vector<float>(kCount, 2), "the other stream did not wait for the group");
    seat.finish();
  });
}

// ---- Point to point. ----

// A rank that takes no part in an operation of the first communicator meets the second one first.
TEST(Group, communicators_on_one_stream_need_not_come_in_the_same_order) {
  run_crew(3, [](Seat& seat) {
    ncclComm_t other = nullptr;
    require_success(ncclCommSplit(seat.comm, 0, -seat.rank, &other, nullptr), "split");
    for (int round = 0; round < 20; ++round) {
      std::vector<int> sums(20000, 1);
      int gathered[3] = {};
      const auto reduce = [&] {
        require_success(ncclAllReduce(sums.data(), sums.data(), sums.size(), ncclInt32, ncclSum,
                                      seat.comm, seat.stream),
                        "AllReduce");
      };
      const auto gather = [&] {
        require_success(ncclAllGather(&seat.rank, gathered, 1, ncclInt32, other, seat.stream),
                        "AllGather");
      };
      require_success(ncclGroupStart(), "start");
      if (seat.rank != 1) reduce();
      gather();
      if (seat.rank == 1) reduce();
      require_success(ncclGroupEnd(), "end");
      // What follows on the stream waits for all of the group.
      require_success(ncclAllReduce(sums.data(), sums.data(), sums.size(), ncclInt32, ncclSum,
                                    other, seat.stream),
                      "AllReduce");
      seat.finish();
      require(sums.front() == 9 && sums.back() == 9, "the sums");
      require(gathered[0] == 2 && gathered[1] == 1 && gathered[2] == 0, "what was gathered");
    }
    require_success(ncclCommDestroy(other), "destroy");
  });
}

TEST(Group, ranks_of_one_thread_may_share_a_stream) {
  const int devices[] = {0, 0};
  ncclComm_t comms[2] = {};
  ASSERT_EQ(ncclCommInitAll(comms, 2, devices), ncclSuccess) << last_error();
  TestStream stream;
  int values[] = {1, 2};
  for (int round = 0; round < 3; ++round) {
    ASSERT_EQ(ncclGroupStart(), ncclSuccess);
    for (int i = 0; i < 2; ++i) {
      ASSERT_EQ(ncclAllReduce(&values[i], &values[i], 1, ncclInt32, ncclSum, comms[i], stream),
                ncclSuccess);
    }
    ASSERT_EQ(ncclGroupEnd(), ncclSuccess) << last_error();
  }
  stream.finish();
  EXPECT_EQ(values[0], 12);
  EXPECT_EQ(values[1], 12);
  for (ncclComm_t comm : comms) EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
}

TEST(PointToPoint, a_grouped_exchange_longer_than_any_link_does_not_deadlock) {
  run_crew(4, [](Seat& seat) {
    constexpr std::size_t kCount = 3 << 20;  // many times what the slots of a link hold
    const auto n = static_cast<std::size_t>(seat.nranks);
    std::vector<std::uint8_t> out(kCount, static_cast<std::uint8_t>(seat.rank + 1));
    std::vector<std::vector<std::uint8_t>> in(n, std::vector<std::uint8_t>(kCount, 0));
    require_success(ncclGroupStart(), "start");
    // All sends first: outside of a group this order would wait for ever.
    for (int peer = 0; peer < seat.nranks; ++peer) {
      require_success(ncclSend(out.data(), kCount, ncclUint8, peer, seat.comm, seat.stream),
                      "send");
    }
    for (int peer = seat.nranks - 1; peer >= 0; --peer) {
      require_success(ncclRecv(in[static_cast<std::size_t>(peer)].data(), kCount, ncclUint8, peer,
                               seat.comm, seat.stream),
                      "recv");
    }
    require_success(ncclGroupEnd(), "end");
    seat.finish();
    for (std::size_t peer = 0; peer < n; ++peer) {
      require(in[peer] == std::vector<std::uint8_t>(kCount, static_cast<std::uint8_t>(peer + 1)),
              "bytes");
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
      require_success(ncclRecv(&in[at], 1, ncclInt32, 1 - seat.rank, seat.comm, seat.stream),
                      "recv");
      require_success(ncclSend(&out[at], 1, ncclInt32, 1 - seat.rank, seat.comm, seat.stream),
                      "send");
    }
    require_success(ncclGroupEnd(), "end");
    seat.finish();
    for (int i = 0; i < kMessages; ++i) {
      require(in[static_cast<std::size_t>(i)] == 100 * (1 - seat.rank) + i,
              "message " + std::to_string(i));
    }
  });
}

TEST(PointToPoint, messages_of_no_bytes_are_legal_and_match) {
  run_crew(2, [](Seat& seat) {
    std::int32_t value = seat.rank;
    std::int32_t got = -1;
    require_success(ncclGroupStart(), "start");
    require_success(ncclSend(nullptr, 0, ncclInt32, 1 - seat.rank, seat.comm, seat.stream),
                    "send nothing");
    require_success(ncclSend(&value, 1, ncclInt32, 1 - seat.rank, seat.comm, seat.stream), "send");
    require_success(ncclRecv(nullptr, 0, ncclInt32, 1 - seat.rank, seat.comm, seat.stream),
                    "recv nothing");
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
    require_success(ncclAllReduce(&sum, &sum, 1, ncclFloat32, ncclSum, seat.comm, seat.stream),
                    "sum");
    require_success(ncclRecv(&in, 1, ncclInt32, seat.previous(), seat.comm, seat.stream), "recv");
    require_success(ncclGroupEnd(), "end");
    seat.finish();
    require(sum == 3 && in == seat.previous(), "results");
  });
}

TEST(PointToPoint, an_exchange_is_priced_like_the_native_call) {
  run_crew(4, [](Seat& seat) {
    for (const std::size_t part : {8, 64 << 10, 8 << 20}) {
      std::vector<char> data(4 * part);
      const auto priced = [&](bool natively) {
        ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
        char* const at = data.data();
        ncclGroupStart();
        if (natively) ncclAlltoAll(at, at, part, ncclInt8, seat.comm, seat.stream);
        for (int peer = 0; !natively && peer < 4; ++peer) {
          ncclSend(at, part, ncclInt8, peer, seat.comm, seat.stream);
          ncclRecv(at, part, ncclInt8, peer, seat.comm, seat.stream);
        }
        require_success(ncclGroupSimulateEnd(&info), "simulate");
        return info.estimatedTime;
      };
      const float ratio = priced(false) / priced(true);
      require(ratio > 0.999f && ratio < 1.1f, "messages cost " + std::to_string(ratio));
    }
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

// Further communicators make the group's list of them move in memory.
TEST(PointToPoint, messages_of_a_communicator_may_be_divided_by_calls_on_others) {
  constexpr int kComms = 9;
  std::vector<ncclComm_t> comms(kComms);
  for (ncclComm_t& comm : comms) require_success(ncclCommInitAll(&comm, 1, nullptr), "init");
  std::vector<float> from(kComms), to(kComms), sums(kComms);
  std::iota(from.begin(), from.end(), 1.0f);
  require_success(ncclGroupStart(), "start");
  for (int i = 0; i < kComms; ++i) {
    const ncclComm_t other = comms[(i + 1) % kComms];
    require_success(ncclSend(&from[i], 1, ncclFloat, 0, comms[i], nullptr), "send");
    require_success(ncclAllReduce(&from[i], &sums[i], 1, ncclFloat, ncclSum, other, nullptr),
                    "sum");
    require_success(ncclRecv(&to[i], 1, ncclFloat, 0, comms[i], nullptr), "receive");
  }
  require_success(ncclGroupEnd(), "end");
  EXPECT_EQ(catStreamSynchronize(nullptr), catSuccess);
  EXPECT_EQ(to, from);
  EXPECT_EQ(sums, from);
  for (ncclComm_t comm : comms) require_success(ncclCommDestroy(comm), "destroy");
}

// Its group still holds the communicator, which is no reason to go on with it.
void expect_refusal_behind(ncclResult_t (*end)(ncclComm_t), const std::string& why) {
  ncclComm_t comm = nullptr;
  require_success(ncclCommInitAll(&comm, 1, nullptr), "init");
  float from = 0;
  float to = 0;
  require_success(ncclGroupStart(), "start");
  require_success(ncclSend(&from, 1, ncclFloat, 0, comm, nullptr), "send");
  require_success(end(comm), "the end of the communicator");
  EXPECT_EQ(ncclRecv(&to, 1, ncclFloat, 0, comm, nullptr), ncclInvalidArgument);
  EXPECT_TRUE(contains(last_error(), why)) << last_error();
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidArgument);
  if (end != ncclCommAbort) require_success(ncclCommDestroy(comm), "destroy");
}

TEST(PointToPoint, a_communicator_that_was_finalized_in_the_group_is_refused) {
  expect_refusal_behind(ncclCommFinalize, "was finalized");
}

TEST(PointToPoint, a_communicator_that_was_aborted_in_the_group_is_refused) {
  expect_refusal_behind(ncclCommAbort, "has already been destroyed");
}

TEST_F(Alone, a_message_to_oneself_without_a_match_is_invalid_usage) {
  float data = 0;
  EXPECT_EQ(ncclSend(&data, 1, ncclFloat32, 0, comm_, stream_), ncclInvalidUsage);
  EXPECT_TRUE(contains(last_error(), "Trying to send to self without a matching recv"))
      << last_error();
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  EXPECT_EQ(ncclRecv(&data, 1, ncclFloat32, 0, comm_, stream_), ncclSuccess);
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
}

}  // namespace
}  // namespace catenary::testing
