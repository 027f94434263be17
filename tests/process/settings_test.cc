// Settings that must be alike on all ranks, and are not.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/support/crew.h"
#include "tests/support/processes.h"
#include "tests/support/rank_group.h"

namespace catenary::testing {
namespace {

using namespace std::chrono_literals;

// Links of different lengths would cut messages differently, and sums would be wrong.
TEST(Settings, that_would_cut_messages_differently_are_refused_on_every_rank) {
  Processes ranks(2, [](int rank, Board& board) {
    ::setenv("CATENARY_SLOTS", rank == 0 ? "4" : "16", 1);
    ncclComm_t comm = nullptr;
    require_result(ncclCommInitRank(&comm, 2, board.id(rank == 0), rank), ncclInvalidUsage,
                   "initialization with unequal slots");
    require(comm == nullptr, "no communicator");
    require(contains(last_error(), "CATENARY_SLOTS"), last_error());
  });
  for (const std::string& failure : ranks.join(20s)) ADD_FAILURE() << failure;
}

// What two ranks log that add eight bytes; rank 0's tuning file holds `tuning`.
std::string log_of_sum(const std::string& tuning) {
  char name[] = "/tmp/catenary_settings_test.XXXXXX";
  const std::filesystem::path folder = ::mkdtemp(name);
  std::ofstream(folder / "tuning") << tuning;
  Processes ranks(2, [&](int rank, Board& board) {
    ::setenv("CATENARY_TUNING_FILE", (folder / "tuning").c_str(), 1);
    ::setenv("NCCL_DEBUG", "TRACE", 1);
    ::setenv("NCCL_DEBUG_SUBSYS", "TUNING", 1);
    ::setenv("NCCL_DEBUG_FILE", (folder / "log.%p").c_str(), 1);
    ncclComm_t comm = nullptr;
    require_success(ncclCommInitRank(&comm, 2, board.id(rank == 0), rank), "initialization");
    TestStream stream;
    float data[2] = {1, 2};
    require_success(ncclAllReduce(data, data, 2, ncclFloat32, ncclSum, comm, stream), "sum");
    stream.finish();
    require(data[0] == 2 && data[1] == 4, "the sum");
    require_success(ncclCommDestroy(comm), "ncclCommDestroy");
  });
  for (const std::string& failure : ranks.join(20s)) ADD_FAILURE() << failure;
  std::stringstream text;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().filename() != "tuning") text << std::ifstream(entry.path()).rdbuf();
  }
  std::filesystem::remove_all(folder);
  return text.str();
}

TEST(Settings, a_tuning_file_that_is_garbage_costs_a_warning_and_no_more) {
  const std::string log = log_of_sum("\x01 garbage\n\n= 7");
  EXPECT_TRUE(contains(log, "is not used, but defaults: it does not begin with a version")) << log;
}

TEST(Settings, the_log_tells_the_choice_its_time_and_with_trace_the_candidates) {
  const std::string log = log_of_sum("");
  EXPECT_TRUE(contains(log, "NCCL INFO AllReduce: 8 Bytes -> Algo ")) << log;
  EXPECT_TRUE(contains(log, " us, slices of ")) << log;
  EXPECT_TRUE(contains(log, "NCCL TRACE AllReduce: 8 Bytes -> candidate Algo ring ")) << log;
}

}  // namespace
}  // namespace catenary::testing
