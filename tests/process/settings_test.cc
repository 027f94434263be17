// Settings that must be alike on all ranks, and are not.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/crew.h"
#include "tests/support/processes.h"
#include "tests/support/rank_group.h"
#include "tests/support/temporary_folder.h"

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

struct Sum {
  std::string tuning = "";  // what the tuning file holds
  int ranks = 2;
  std::size_t count = 2;
  bool last_is_apart = false;  // as if on another host
  const char* level = "TRACE";
  std::string algorithm = "";  // that is forced
  const char* box = "0";
};

// What ranks log that add up their floats.
std::string log_of(const Sum& sum) {
  const TemporaryFolder own;
  const std::filesystem::path& folder = own.path();
  std::ofstream(folder / "tuning") << sum.tuning;
  Processes ranks(sum.ranks, [&](int rank, Board& board) {
    if (sum.last_is_apart && rank == sum.ranks - 1) ::setenv("NCCL_HOSTID", "apart", 1);
    ::setenv("CATENARY_TUNING_FILE", (folder / "tuning").c_str(), 1);
    ::setenv("NCCL_DEBUG", sum.level, 1);
    ::setenv("CATENARY_ALGO", sum.algorithm.c_str(), 1);
    ::setenv("CATENARY_BOX", sum.box, 1);
    ::setenv("NCCL_DEBUG_SUBSYS", "TUNING", 1);
    ::setenv("NCCL_DEBUG_FILE", (folder / "log.%p").c_str(), 1);
    ncclComm_t comm = nullptr;
    require_success(ncclCommInitRank(&comm, sum.ranks, board.id(rank == 0), rank),
                    "initialization");
    TestStream stream;
    std::vector<float> data(sum.count);
    for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>(i % 1000);
    require_success(
        ncclAllReduce(data.data(), data.data(), sum.count, ncclFloat32, ncclSum, comm, stream),
        "sum");
    stream.finish();
    for (std::size_t i = 0; i < data.size(); ++i) {
      require(data[i] == static_cast<float>(sum.ranks) * static_cast<float>(i % 1000), "the sum");
    }
    require_success(ncclCommDestroy(comm), "ncclCommDestroy");
  });
  for (const std::string& failure : ranks.join(20s)) ADD_FAILURE() << failure;
  std::stringstream text;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().filename() != "tuning") text << std::ifstream(entry.path()).rdbuf();
    text.clear();  // a file may be empty
  }
  return text.str();
}

TEST(Settings, a_tuning_file_that_is_garbage_costs_a_warning_and_no_more) {
  const std::string log = log_of({.tuning = "\x01 garbage\n\n= 7"});
  EXPECT_TRUE(contains(log, "is not used, but defaults: it does not begin with a version")) << log;
}

TEST(Settings, the_log_tells_the_choice_its_time_and_with_trace_the_candidates) {
  const std::string log = log_of({});
  EXPECT_TRUE(contains(log, "NCCL INFO AllReduce: 8 Bytes -> Algo ")) << log;
  EXPECT_TRUE(contains(log, " us, slices of ")) << log;
  EXPECT_TRUE(contains(log, "NCCL TRACE AllReduce: 8 Bytes -> candidate Algo ring ")) << log;
}

TEST(Settings, without_trace_one_rank_tells_the_choice) {
  const std::string log = log_of({.ranks = 3, .level = "INFO", .algorithm = "pairwise"});
  for (const char* line : {"NCCL INFO AllReduce: 8 Bytes -> Algo ",
                           "NCCL INFO CATENARY_ALGO=pairwise has no effect on AllReduce, "}) {
    const std::size_t first = log.find(line);
    ASSERT_NE(first, std::string::npos) << log;
    EXPECT_EQ(log.find(line, first + 1), std::string::npos) << log;
  }
}

TEST(Settings, boxes_that_do_not_divide_the_ranks_are_told) {
  constexpr const char* kTold = "CATENARY_BOX=3 has no effect: it does not divide 4 ranks";
  const std::string log = log_of({.ranks = 4, .level = "WARN", .box = "3"});
  EXPECT_TRUE(contains(log, kTold)) << log;
  EXPECT_TRUE(contains(log, "boxes have 4")) << "as without it: " << log;
  EXPECT_FALSE(contains(log_of({.ranks = 3, .level = "WARN", .box = "3"}), "CATENARY_BOX"));
}

TEST(Settings, algorithms_may_be_written_in_capitals) {
  const std::string log = log_of({.level = "INFO", .algorithm = "Tree"});
  EXPECT_TRUE(contains(log, "AllReduce: 8 Bytes -> Algo tree ")) << log;
}

// Those that share memory do as those that do not: slices are cut alike.
TEST(Settings, with_a_rank_that_is_reached_by_tcp_long_messages_fill_packets) {
  const std::string log =
      log_of({.ranks = 3, .count = std::size_t{1} << 20, .last_is_apart = true});
  const std::string head = "NCCL INFO AllReduce: 4194304 Bytes -> Algo ";
  int told = 0;
  std::set<std::string> all;
  for (std::size_t at = log.find(head); at != std::string::npos; at = log.find(head, at + 1)) {
    const std::string line = log.substr(at, log.find('\n', at) - at);
    const std::string slices = line.substr(line.rfind(" of ") + 4);
    EXPECT_TRUE(slices == "62464 Bytes" || slices == "31232 Bytes" || slices == "15616 Bytes" ||
                slices == "7808 Bytes")
        << line;
    all.insert(slices);
    ++told;
  }
  EXPECT_EQ(told, 3) << log;
  EXPECT_EQ(all.size(), 1u) << log;
}

}  // namespace
}  // namespace catenary::testing
