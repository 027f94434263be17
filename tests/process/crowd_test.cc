// Whom ranks share their cores with, as the log tells.
#include <gtest/gtest.h>
#include <sched.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "tests/support/processes.h"
#include "tests/support/rank_group.h"
#include "tests/support/temporary_folder.h"

namespace catenary::testing {
namespace {

using namespace std::chrono_literals;

// On the first core that the test may use, where there is no room for two.
void bind_to_one_core() {
  cpu_set_t allowed;
  require(::sched_getaffinity(0, sizeof allowed, &allowed) == 0, "sched_getaffinity");
  int core = 0;
  while (!CPU_ISSET(core, &allowed)) ++core;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(core, &one);
  require(::sched_setaffinity(0, sizeof one, &one) == 0, "sched_setaffinity");
}

// What rank 0 of two logs while they make a communicator.
std::string log_of_two(const std::string& host_of_first, const std::string& host_of_second) {
  const TemporaryFolder folder;
  Processes ranks(2, [&](int rank, Board& board) {
    bind_to_one_core();
    ::setenv("NCCL_HOSTID", (rank == 0 ? host_of_first : host_of_second).c_str(), 1);
    ::setenv("NCCL_DEBUG", "INFO", 1);
    ::setenv("NCCL_DEBUG_FILE", (folder.path() / ("log" + std::to_string(rank))).c_str(), 1);
    ncclComm_t comm = nullptr;
    require_success(ncclCommInitRank(&comm, 2, board.id(rank == 0), rank), "ncclCommInitRank");
    require_success(ncclCommDestroy(comm), "destroy");
  });
  for (const std::string& failure : ranks.join(20s)) ADD_FAILURE() << failure;
  std::stringstream text;
  text << std::ifstream(folder.path() / "log0").rdbuf();
  return text.str();
}

TEST(Crowd, is_of_all_that_share_memory) {
  const std::string log = log_of_two("same", "same");
  EXPECT_NE(log.find("2 ranks in boxes of 2; 2 of them share 1 core here"), log.npos) << log;
}

// As containers are, and network namespaces.
TEST(Crowd, is_of_all_hosts_that_are_one_machine) {
  const std::string log = log_of_two("one", "other");
  EXPECT_NE(log.find("2 ranks in boxes of 1; 2 of them share 1 core here"), log.npos) << log;
}

}  // namespace
}  // namespace catenary::testing
