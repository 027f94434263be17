// The forked child of a process that has communicators: errors from all calls, and no hang, while
// an operation is under way and threads of the parent are inside of calls.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "tests/support/crew.h"
#include "tests/support/rank_group.h"

namespace catenary::testing {
namespace {

using namespace std::chrono_literals;

constexpr int kPatience_s = 20;

// The first call that gives anything but an error; 0 if none does.
int first_that_is_not_refused(ncclComm_t comm) {
  ncclComm_t child = nullptr;
  int other = 1;
  if (ncclCommSplit(comm, 0, 0, &child, nullptr) != ncclInvalidUsage) return 1;
  if (ncclCommShrink(comm, &other, 1, &child, nullptr, NCCL_SHRINK_ABORT) != ncclInvalidUsage) {
    return 2;
  }
  if (ncclCommFinalize(comm) != ncclInvalidUsage) return 3;
  if (ncclCommDestroy(comm) != ncclInvalidUsage) return 4;
  if (ncclCommAbort(comm) != ncclInvalidUsage) return 5;
  return 0;
}

TEST(Fork, ends_no_communicator_of_the_parent) {
  run_with_an_idle_peer([](Seat& seat) {
    std::atomic<bool> over{false};
    std::thread watchdog([&] {
      ncclResult_t state = ncclSuccess;
      while (!over) ncclCommGetAsyncError(seat.comm, &state);
    });
    std::thread waiter([&] { catStreamSynchronize(seat.stream); });
    std::this_thread::sleep_for(20ms);
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(kPatience_s);  // what hangs is killed
      ::_exit(first_that_is_not_refused(seat.comm));
    }
    int status = -1;
    const pid_t ended = ::waitpid(child, &status, 0);
    over = true;
    watchdog.join();
    ncclResult_t state = ncclInternalError;
    const ncclResult_t asked = ncclCommGetAsyncError(seat.comm, &state);
    ncclCommAbort(seat.comm);
    waiter.join();
    seat.comm = nullptr;
    require(ended == child && WIFEXITED(status), "the child was killed: it hung, or crashed");
    require(WEXITSTATUS(status) == 0,
            "call " + std::to_string(WEXITSTATUS(status)) + " of the child was not refused");
    require(asked == ncclSuccess && state == ncclSuccess, "the parent's communicator has failed");
  });
}

}  // namespace
}  // namespace catenary::testing
