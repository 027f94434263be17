// A system that has no thread left when the library wants one: an error that says so, no wait for
// ranks that never start, and nothing left behind.
#include <gtest/gtest.h>

#include "tests/support/crew.h"
#include "tests/support/no_threads.h"
#include "tests/support/processes.h"
#include "tests/support/rank_group.h"

namespace catenary::testing {
namespace {

using namespace std::chrono_literals;

void require_refused(ncclResult_t result, const std::string& what) {
  require_result(result, ncclSystemError, what);
  require(contains(last_error(), "cannot start a thread"), what + ": " + last_error());
}

// In a process of its own, since a thread that the library once made it does not make again.
void run_alone(const std::function<void()>& body) {
  Processes process(1, [&body](int, Board&) { body(); });
  for (const std::string& failure : process.join(20s)) ADD_FAILURE() << failure;
}

TEST(NoThread, for_a_join_in_the_background_is_a_system_error_and_leaves_no_communicator) {
  run_alone([] {
    const ncclUniqueId id = new_unique_id();
    ncclConfig_t config = non_blocking();
    ncclComm_t comms[2] = {nullptr, nullptr};
    {
      const NoThreads none;
      require_refused(ncclCommInitRankConfig(comms, 1, id, 0, &config), "init");
      require(comms[0] == nullptr, "a communicator was left behind");
      require_success(ncclGroupStart(), "group");
      for (int rank = 0; rank < 2; ++rank) {
        ncclCommInitRankConfig(&comms[rank], 2, id, rank, &config);
      }
      require_refused(ncclGroupEnd(), "group of inits");
      require(comms[0] == nullptr && comms[1] == nullptr, "communicators were left behind");
    }
    const ncclResult_t begun = ncclCommInitRankConfig(comms, 1, new_unique_id(), 0, &config);
    require(begun == ncclSuccess || begun == ncclInProgress, "init with threads: " + last_error());
    require_result(wait_while_in_progress(comms[0], 10s), ncclSuccess, "state");
    require_success(ncclCommDestroy(comms[0]), "destroy");
  });
}

TEST(NoThread, for_the_ranks_of_one_call_ends_the_call_at_once) {
  run_alone([] {
    new_unique_id();  // the root service has its thread
    ncclComm_t comms[3] = {};
    const NoThreads none;
    require_refused(ncclCommInitAll(comms, 3, nullptr), "ncclCommInitAll");
    for (ncclComm_t comm : comms) require(comm == nullptr, "a communicator was left behind");
  });
}

TEST(NoThread, for_an_id_is_a_system_error_and_the_next_id_works) {
  run_alone([] {
    ncclUniqueId id;
    {
      const NoThreads none;
      for (int i = 0; i < 3; ++i) require_refused(ncclGetUniqueId(&id), "ncclGetUniqueId");
    }
    ncclComm_t comm = nullptr;
    require_success(ncclCommInitRank(&comm, 1, new_unique_id(), 0), "init");
    require_success(ncclCommDestroy(comm), "destroy");
  });
}

TEST(NoThread, for_finalizing_in_the_background_leaves_the_communicator_as_it_was) {
  run_alone([] {
    ncclConfig_t config = non_blocking();
    ncclComm_t comm = nullptr;
    ncclCommInitRankConfig(&comm, 1, new_unique_id(), 0, &config);
    require_result(wait_while_in_progress(comm, 10s), ncclSuccess, "state");
    {
      const NoThreads none;
      require_refused(ncclCommFinalize(comm), "finalize");
    }
    int count = 0;
    require_success(ncclCommCount(comm, &count), "count");
    float value = 1;
    require_success(ncclAllReduce(&value, &value, 1, ncclFloat, ncclSum, comm, nullptr), "sum");
    require_success(ncclCommDestroy(comm), "destroy");
  });
}

}  // namespace
}  // namespace catenary::testing
