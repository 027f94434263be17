// The life of a communicator: made blocking or not, alone, in groups, by splitting; ended well or
// not, once or twice, by its own thread or by another one.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <climits>
#include <cstring>
#include <thread>
#include <vector>

#include "tests/support/crew.h"
#include "tests/support/rank_group.h"

namespace catenary::testing {
namespace {

using namespace std::chrono_literals;

void check_sum(ncclComm_t comm, catStream_t stream, int nranks, const std::string& what) {
  std::vector<std::int32_t> data(3000, 1);
  require_success(
      ncclAllReduce(data.data(), data.data(), data.size(), ncclInt32, ncclSum, comm, stream), what);
  require(catStreamSynchronize(stream) == catSuccess, what);
  require(data == std::vector<std::int32_t>(3000, nranks), what + ": wrong sum");
}

// ---- Making. ----

TEST(Init, several_ranks_in_one_thread_join_in_a_group) {
  constexpr int kRanks = 3;
  const ncclUniqueId id = new_unique_id();
  ncclComm_t comms[kRanks];
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  for (int rank = 0; rank < kRanks; ++rank) {
    ASSERT_EQ(catSetDevice(rank), catSuccess);
    ASSERT_EQ(ncclCommInitRank(&comms[rank], kRanks, id, rank), ncclSuccess);
  }
  ASSERT_EQ(ncclGroupEnd(), ncclSuccess) << last_error();
  for (int rank = 0; rank < kRanks; ++rank) {
    int value = -1;
    EXPECT_EQ(ncclCommUserRank(comms[rank], &value), ncclSuccess);
    EXPECT_EQ(value, rank);
    EXPECT_EQ(ncclCommCount(comms[rank], &value), ncclSuccess);
    EXPECT_EQ(value, kRanks);
    EXPECT_EQ(ncclCommCuDevice(comms[rank], &value), ncclSuccess);
    EXPECT_EQ(value, rank);
    EXPECT_EQ(ncclCommDestroy(comms[rank]), ncclSuccess);
  }
  ASSERT_EQ(catSetDevice(0), catSuccess);
}

TEST(Init, all_takes_a_list_of_devices_that_may_repeat) {
  const int devices[3] = {2, 0, 2};
  ncclComm_t comms[3];
  ASSERT_EQ(ncclCommInitAll(comms, 3, devices), ncclSuccess) << last_error();
  for (int rank = 0; rank < 3; ++rank) {
    int value = -1;
    EXPECT_EQ(ncclCommCuDevice(comms[rank], &value), ncclSuccess);
    EXPECT_EQ(value, devices[rank]);
    EXPECT_EQ(ncclCommUserRank(comms[rank], &value), ncclSuccess);
    EXPECT_EQ(value, rank);
  }
  for (ncclComm_t comm : comms) EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
}

TEST(Init, a_communicator_takes_no_operations_in_the_group_that_makes_it) {
  TestStream stream;
  float data = 1;
  ncclComm_t comm = nullptr;
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  ASSERT_EQ(ncclCommInitRank(&comm, 1, new_unique_id(), 0), ncclSuccess);
  EXPECT_EQ(ncclAllReduce(&data, &data, 1, ncclFloat32, ncclSum, comm, stream),
            ncclInvalidArgument);
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidArgument);
  EXPECT_EQ(comm, nullptr);
}

TEST(Init, wrong_ranks_are_refused) {
  const ncclUniqueId id = new_unique_id();
  ncclComm_t comm = nullptr;
  EXPECT_EQ(ncclCommInitRank(&comm, 2, id, 2), ncclInvalidArgument);
  EXPECT_EQ(ncclCommInitRank(&comm, 2, id, -1), ncclInvalidArgument);
  EXPECT_EQ(ncclCommInitRank(&comm, 0, id, 0), ncclInvalidArgument);
  EXPECT_EQ(ncclCommInitRank(&comm, -1, id, 0), ncclInvalidArgument);
  EXPECT_EQ(ncclCommInitRank(&comm, INT_MAX, id, 0), ncclInvalidArgument);
  EXPECT_EQ(ncclCommInitRank(nullptr, 1, id, 0), ncclInvalidArgument);
  EXPECT_EQ(ncclCommInitAll(&comm, 0, nullptr), ncclInvalidArgument);
  EXPECT_EQ(ncclCommInitAll(nullptr, 1, nullptr), ncclInvalidArgument);
  EXPECT_EQ(comm, nullptr);
}

TEST(Init, an_id_of_garbage_is_refused) {
  ncclUniqueId id;
  std::memset(&id, 0x5a, sizeof id);
  ncclComm_t comm = nullptr;
  EXPECT_EQ(ncclCommInitRank(&comm, 1, id, 0), ncclInvalidArgument);
  EXPECT_EQ(comm, nullptr);
}

TEST(Init, ranks_that_disagree_about_their_number_are_told) {
  const ncclUniqueId id = new_unique_id();
  run_side_by_side(2, [&](int rank) {
    ncclComm_t comm = nullptr;
    require_result(ncclCommInitRank(&comm, rank == 0 ? 2 : 3, id, rank), ncclInvalidArgument,
                   "init");
    require(comm == nullptr, "a communicator was left behind");
  });
}

TEST(Init, two_ranks_of_one_number_are_told) {
  const ncclUniqueId id = new_unique_id();
  run_side_by_side(2, [&](int) {
    ncclComm_t comm = nullptr;
    require_result(ncclCommInitRank(&comm, 2, id, 1), ncclInvalidArgument, "init");
  });
}

TEST(NonBlocking, is_in_progress_until_all_are_there) {
  const ncclUniqueId id = new_unique_id();
  ncclConfig_t config = non_blocking();
  ncclComm_t first = nullptr;
  const ncclResult_t begun = ncclCommInitRankConfig(&first, 2, id, 0, &config);
  ASSERT_TRUE(begun == ncclSuccess || begun == ncclInProgress);
  ASSERT_NE(first, nullptr);
  ncclResult_t state = ncclSuccess;
  ASSERT_EQ(ncclCommGetAsyncError(first, &state), ncclSuccess);
  EXPECT_EQ(state, ncclInProgress);

  float data = 1;
  TestStream stream;
  EXPECT_EQ(ncclAllReduce(&data, &data, 1, ncclFloat32, ncclSum, first, stream),
            ncclInvalidArgument);
  EXPECT_TRUE(contains(last_error(), "before the previous operation returned ncclSuccess"))
      << last_error();

  std::thread other([&] {
    ncclComm_t second = nullptr;
    EXPECT_EQ(ncclCommInitRank(&second, 2, id, 1), ncclSuccess);
    EXPECT_EQ(ncclCommDestroy(second), ncclSuccess);
  });
  EXPECT_EQ(wait_while_in_progress(first, 10s), ncclSuccess);
  other.join();
  EXPECT_EQ(ncclCommDestroy(first), ncclSuccess);
}

TEST(NonBlocking, is_not_destroyed_before_it_is_there) {
  ncclConfig_t config = non_blocking();
  ncclComm_t comm = nullptr;
  ncclCommInitRankConfig(&comm, 2, new_unique_id(), 0, &config);
  ASSERT_NE(comm, nullptr);
  EXPECT_EQ(ncclCommDestroy(comm), ncclInvalidArgument);
  EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
}

TEST(NonBlocking, a_whole_life) {
  const ncclUniqueId id = new_unique_id();
  run_side_by_side(3, [&](int rank) {
    require(catSetDevice(rank) == catSuccess, "catSetDevice");
    ncclConfig_t config = non_blocking();
    ncclComm_t comm = nullptr;
    const ncclResult_t begun = ncclCommInitRankConfig(&comm, 3, id, rank, &config);
    require(begun == ncclSuccess || begun == ncclInProgress, "init");
    require_success(wait_while_in_progress(comm, 10s), "init");
    TestStream stream;
    check_sum(comm, stream, 3, "sum");
    const ncclResult_t ending = ncclCommFinalize(comm);
    require(ending == ncclSuccess || ending == ncclInProgress, "finalize");
    require_success(wait_while_in_progress(comm, 10s), "finalize");
    require_success(ncclCommDestroy(comm), "destroy");
  });
}

TEST(NonBlocking, several_in_one_group_come_to_success_one_by_one) {
  const ncclUniqueId id = new_unique_id();
  ncclConfig_t config = non_blocking();
  ncclComm_t comms[2] = {nullptr, nullptr};
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  for (int rank = 0; rank < 2; ++rank) {
    const ncclResult_t begun = ncclCommInitRankConfig(&comms[rank], 2, id, rank, &config);
    ASSERT_TRUE(begun == ncclSuccess || begun == ncclInProgress);
  }
  const ncclResult_t ended = ncclGroupEnd();
  EXPECT_TRUE(ended == ncclSuccess || ended == ncclInProgress);
  for (ncclComm_t comm : comms) EXPECT_EQ(wait_while_in_progress(comm, 10s), ncclSuccess);
  for (ncclComm_t comm : comms) EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
}

TEST(NonBlocking, may_not_share_a_group_of_operations_with_a_blocking_one) {
  ncclConfig_t config = non_blocking();
  ncclComm_t one = nullptr;
  ncclComm_t other = nullptr;
  ncclCommInitRankConfig(&one, 1, new_unique_id(), 0, &config);
  ASSERT_EQ(wait_while_in_progress(one, 10s), ncclSuccess);
  ASSERT_EQ(ncclCommInitRank(&other, 1, new_unique_id(), 0), ncclSuccess);
  float data = 1;
  TestStream stream;
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  EXPECT_EQ(ncclAllReduce(&data, &data, 1, ncclFloat32, ncclSum, one, stream), ncclSuccess);
  ncclAllReduce(&data, &data, 1, ncclFloat32, ncclSum, other, stream);
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidArgument);
  EXPECT_TRUE(contains(last_error(), "Blocking and nonblocking communicators are not allowed"))
      << last_error();
  EXPECT_EQ(ncclCommDestroy(one), ncclSuccess);
  EXPECT_EQ(ncclCommDestroy(other), ncclSuccess);
}

TEST(NonBlocking, an_init_that_fails_in_the_background_says_so) {
  const ncclUniqueId id = new_unique_id();
  ncclConfig_t config = non_blocking();
  ncclComm_t comms[2] = {nullptr, nullptr};
  ncclCommInitRankConfig(&comms[0], 2, id, 1, &config);
  ncclCommInitRankConfig(&comms[1], 2, id, 1, &config);  // a second rank 1
  for (ncclComm_t comm : comms) {
    EXPECT_EQ(wait_while_in_progress(comm, 10s), ncclInvalidArgument);
    EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
  }
}

// ---- The configuration. ----

ncclResult_t init_alone(ncclConfig_t* config) {
  ncclComm_t comm = nullptr;
  const ncclResult_t result = ncclCommInitRankConfig(&comm, 1, new_unique_id(), 0, config);
  if (result == ncclSuccess) ncclCommDestroy(comm);
  return result;
}

TEST(Config, null_means_defaults) { EXPECT_EQ(init_alone(nullptr), ncclSuccess); }

TEST(Config, structs_of_older_headers_are_accepted_and_what_lies_beyond_is_not_read) {
  for (const std::size_t size :
       {offsetof(ncclConfig_t, cgaClusterSize), offsetof(ncclConfig_t, splitShare),
        offsetof(ncclConfig_t, trafficClass), offsetof(ncclConfig_t, commName)}) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    std::memset(reinterpret_cast<char*>(&config) + size, 0x77, sizeof config - size);
    config.size = size;
    config.version = NCCL_VERSION(2, 14, 3);
    EXPECT_EQ(init_alone(&config), ncclSuccess) << "size " << size << ": " << last_error();
  }
}

TEST(Config, structs_of_newer_headers_are_accepted) {
  struct {
    ncclConfig_t known = NCCL_CONFIG_INITIALIZER;
    int newer[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
  } config;
  config.known.size = sizeof config;
  config.known.version = NCCL_VERSION(2, 40, 0);
  EXPECT_EQ(init_alone(&config.known), ncclSuccess) << last_error();
}

TEST(Config, a_struct_that_was_not_initialized_is_refused) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.magic = 0;
  EXPECT_EQ(init_alone(&config), ncclInvalidArgument);
  EXPECT_TRUE(contains(last_error(), "not initialized via NCCL_CONFIG_INITIALIZER"))
      << last_error();
  config = NCCL_CONFIG_INITIALIZER;
  config.size = 4;
  EXPECT_EQ(init_alone(&config), ncclInvalidArgument);
}

TEST(Config, values_out_of_range_are_refused) {
  const auto with = [](int ncclConfig_t::*field, int value) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.*field = value;
    return init_alone(&config);
  };
  EXPECT_EQ(with(&ncclConfig_t::blocking, 2), ncclInvalidArgument);
  EXPECT_EQ(with(&ncclConfig_t::blocking, -1), ncclInvalidArgument);
  EXPECT_EQ(with(&ncclConfig_t::cgaClusterSize, 9), ncclInvalidArgument);
  EXPECT_EQ(with(&ncclConfig_t::minCTAs, 0), ncclInvalidArgument);
  EXPECT_EQ(with(&ncclConfig_t::maxCTAs, -3), ncclInvalidArgument);
  EXPECT_EQ(with(&ncclConfig_t::splitShare, 2), ncclInvalidArgument);
  EXPECT_EQ(with(&ncclConfig_t::maxCTAs, 8), ncclSuccess);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.minCTAs = 5;
  config.maxCTAs = 4;
  EXPECT_EQ(init_alone(&config), ncclInvalidArgument);
}

// ---- Shrinking. ----

TEST(Shrink, makes_a_communicator_of_the_ranks_that_remain) {
  run_crew(4, [](Seat& seat) {
    if (seat.rank == 1) return;
    int excluded = 1;
    ncclComm_t child = nullptr;
    require_success(ncclCommShrink(seat.comm, &excluded, 1, &child, nullptr, NCCL_SHRINK_DEFAULT),
                    "ncclCommShrink");
    int rank = -1;
    int count = -1;
    require_success(ncclCommUserRank(child, &rank), "ncclCommUserRank");
    require_success(ncclCommCount(child, &count), "ncclCommCount");
    require(rank == (seat.rank == 0 ? 0 : seat.rank - 1) && count == 3, "the new ranks");
    float one = 1;
    require_success(ncclAllReduce(&one, &one, 1, ncclFloat32, ncclSum, child, seat.stream), "sum");
    seat.finish();
    require(one == 3, "the sum of the ranks that remain");
    require_success(ncclCommDestroy(child), "ncclCommDestroy");
  });
}

TEST(Shrink, refuses_a_rank_that_is_excluded_twice) {
  run_crew(3, [](Seat& seat) {
    std::array<int, 2> twice = {seat.next(), seat.next()};
    ncclComm_t child = nullptr;
    require_result(ncclCommShrink(seat.comm, twice.data(), 2, &child, nullptr, NCCL_SHRINK_DEFAULT),
                   ncclInvalidArgument, "the call");
    require(contains(last_error(), "excluded twice"), last_error());
  });
}

TEST(Shrink, refuses_lists_that_make_no_sense) {
  run_crew(2, [](Seat& seat) {
    int own = seat.rank;
    ncclComm_t child = nullptr;
    require_result(ncclCommShrink(seat.comm, &own, 1, &child, nullptr, NCCL_SHRINK_DEFAULT),
                   ncclInvalidArgument, "a rank that excludes itself");
    require_result(ncclCommShrink(seat.comm, &own, 0, &child, nullptr, NCCL_SHRINK_DEFAULT),
                   ncclInvalidArgument, "nobody excluded");
    require_result(ncclCommShrink(seat.comm, &own, 2, &child, nullptr, NCCL_SHRINK_DEFAULT),
                   ncclInvalidArgument, "everybody excluded");
    require_result(ncclCommShrink(seat.comm, &own, 1, &child, nullptr, 7), ncclInvalidArgument,
                   "unknown flags");
    int nobody = 2;
    require_result(ncclCommShrink(seat.comm, &nobody, 1, &child, nullptr, NCCL_SHRINK_DEFAULT),
                   ncclInvalidArgument, "a rank that is none");
    require(child == nullptr, "no communicator from a refused call");
  });
}

// ---- Splitting. ----

TEST(Split, by_color_and_key) {
  run_crew(5, [](Seat& seat) {
    // Even ranks in reversed order, odd ranks in theirs, rank 4 in none.
    const int color = seat.rank == 4 ? NCCL_SPLIT_NOCOLOR : seat.rank % 2;
    ncclComm_t child = nullptr;
    require_success(ncclCommSplit(seat.comm, color, color == 0 ? -seat.rank : 0, &child, nullptr),
                    "split");
    if (color == NCCL_SPLIT_NOCOLOR) {
      require(child == nullptr, "a rank of no color got a communicator");
    } else {
      int rank = -1;
      int count = -1;
      require_success(ncclCommUserRank(child, &rank), "rank");
      require_success(ncclCommCount(child, &count), "count");
      require(count == 2, "count of the part");
      require(rank == (color == 0 ? 1 - seat.rank / 2 : seat.rank / 2), "rank in the part");
      check_sum(child, seat.stream, 2, "sum of the part");
    }
    check_sum(seat.comm, seat.stream, 5, "sum of the parent");
    require_success(ncclCommDestroy(child), "destroy the part");
  });
}

TEST(Split, outlives_its_parent) {
  run_crew(3, [](Seat& seat) {
    ncclComm_t child = nullptr;
    require_success(ncclCommSplit(seat.comm, 0, 0, &child, nullptr), "split");
    require_success(ncclCommDestroy(seat.comm), "destroy the parent");
    seat.comm = nullptr;
    check_sum(child, seat.stream, 3, "sum");
    require_success(ncclCommDestroy(child), "destroy the part");
  });
}

TEST(Split, of_several_ranks_of_one_thread_is_grouped) {
  ncclComm_t comms[3];
  ncclComm_t parts[3] = {nullptr, nullptr, nullptr};
  ASSERT_EQ(ncclCommInitAll(comms, 3, nullptr), ncclSuccess);
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  for (int rank = 0; rank < 3; ++rank) {
    ASSERT_EQ(ncclCommSplit(comms[rank], rank == 1 ? 1 : 0, rank, &parts[rank], nullptr),
              ncclSuccess);
  }
  ASSERT_EQ(ncclGroupEnd(), ncclSuccess) << last_error();
  for (int rank = 0; rank < 3; ++rank) {
    int count = 0;
    EXPECT_EQ(ncclCommCount(parts[rank], &count), ncclSuccess);
    EXPECT_EQ(count, rank == 1 ? 1 : 2);
    EXPECT_EQ(ncclCommDestroy(parts[rank]), ncclSuccess);
  }
  for (ncclComm_t comm : comms) EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
}

TEST(Split, refuses_a_bad_color) {
  ncclComm_t comm = nullptr;
  ncclComm_t child = nullptr;
  ASSERT_EQ(ncclCommInitRank(&comm, 1, new_unique_id(), 0), ncclSuccess);
  EXPECT_EQ(ncclCommSplit(comm, -2, 0, &child, nullptr), ncclInvalidArgument);
  EXPECT_EQ(ncclCommSplit(comm, 0, 0, nullptr, nullptr), ncclInvalidArgument);
  EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
}

// ---- Ending. ----

TEST(End, finalize_waits_for_what_was_enqueued_and_destroy_follows) {
  run_crew(2, [](Seat& seat) {
    std::vector<float> data(1 << 20, 1);
    require_success(ncclAllReduce(data.data(), data.data(), data.size(), ncclFloat32, ncclSum,
                                  seat.comm, seat.stream),
                    "AllReduce");
    require_success(ncclCommFinalize(seat.comm), "finalize");
    require(data == std::vector<float>(1 << 20, 2), "finalize did not wait");
    require_result(ncclCommFinalize(seat.comm), ncclInvalidArgument, "second finalize");
    require_result(
        ncclAllReduce(data.data(), data.data(), 1, ncclFloat32, ncclSum, seat.comm, seat.stream),
        ncclInvalidArgument, "use after finalize");
  });
}

TEST(End, destroy_flushes_by_itself) {
  run_crew(3, [](Seat& seat) {
    std::vector<float> data(1 << 20, 1);
    require_success(ncclAllReduce(data.data(), data.data(), data.size(), ncclFloat32, ncclSum,
                                  seat.comm, seat.stream),
                    "AllReduce");
    require_success(ncclCommDestroy(seat.comm), "destroy");
    require(data == std::vector<float>(1 << 20, 3), "destroy did not wait");
    require_result(ncclCommDestroy(seat.comm), ncclInvalidArgument, "second destroy");
    require(contains(last_error(), "has already been destroyed"), last_error());
    seat.comm = nullptr;
  });
}

TEST(End, destroy_needs_no_other_rank) {
  run_crew(3, [](Seat& seat) {
    check_sum(seat.comm, seat.stream, 3, "sum");
    if (seat.rank != 0) return;
    const Stopwatch watch;
    require_success(ncclCommDestroy(seat.comm), "destroy");
    require(watch.ms() < 1000, "destroy took " + std::to_string(watch.ms()) + " ms");
    seat.comm = nullptr;
  });
}

TEST(End, a_handle_that_ended_is_refused_everywhere) {
  ncclComm_t comm = nullptr;
  ASSERT_EQ(ncclCommInitRank(&comm, 1, new_unique_id(), 0), ncclSuccess);
  ASSERT_EQ(ncclCommDestroy(comm), ncclSuccess);
  float data = 0;
  int value = 0;
  ncclResult_t state;
  EXPECT_EQ(ncclAllReduce(&data, &data, 1, ncclFloat32, ncclSum, comm, nullptr),
            ncclInvalidArgument);
  EXPECT_EQ(ncclCommCount(comm, &value), ncclInvalidArgument);
  EXPECT_EQ(ncclCommGetAsyncError(comm, &state), ncclInvalidArgument);
  EXPECT_EQ(ncclCommFinalize(comm), ncclInvalidArgument);
  EXPECT_EQ(ncclCommDestroy(comm), ncclInvalidArgument);
  EXPECT_EQ(ncclCommAbort(comm), ncclInvalidArgument);
}

TEST(End, null_is_accepted_where_nccl_accepts_it_and_garbage_nowhere) {
  EXPECT_EQ(ncclCommFinalize(nullptr), ncclSuccess);
  EXPECT_EQ(ncclCommDestroy(nullptr), ncclSuccess);
  EXPECT_EQ(ncclCommAbort(nullptr), ncclSuccess);
  ncclResult_t state;
  EXPECT_EQ(ncclCommGetAsyncError(nullptr, &state), ncclInvalidArgument);

  alignas(16) char junk[256];
  std::memset(junk, 0x33, sizeof junk);
  const auto garbage = reinterpret_cast<ncclComm_t>(junk);
  EXPECT_EQ(ncclCommDestroy(garbage), ncclInvalidArgument);
  EXPECT_TRUE(contains(last_error(), "corrupted comm object detected")) << last_error();
  EXPECT_EQ(ncclCommAbort(garbage), ncclInvalidArgument);
}

TEST(End, communicators_come_and_go) {
  run_side_by_side(2, [id = new_unique_id()](int rank) {
    require(catSetDevice(rank) == catSuccess, "catSetDevice");
    TestStream stream;
    ncclUniqueId next = id;
    for (int round = 0; round < 10; ++round) {
      ncclComm_t comm = nullptr;
      require_success(ncclCommInitRank(&comm, 2, next, rank), "init");
      ncclUniqueId fresh = rank == 0 ? new_unique_id() : ncclUniqueId{};
      require_success(ncclBcast(fresh.internal, sizeof fresh.internal, ncclChar, 0, comm, stream),
                      "pass the id");
      stream.finish();
      require_success(ncclCommDestroy(comm), "destroy");
      next = fresh;
    }
  });
}

}  // namespace
}  // namespace catenary::testing
