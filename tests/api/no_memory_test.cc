// Memory that is not to be had: a call fails with a code, the process lives, streams complete, and
// what is made anew works.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <thread>

#include "tests/support/crew.h"
#include "tests/support/rank_group.h"

namespace {

// So many more allocations of this thread, and then one fails; 0: none does.
thread_local int until_failure = 0;

}  // namespace

// For this program and the library in it. Inlined, they would look like a mismatch to the compiler.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  if (until_failure > 0 && --until_failure == 0) throw std::bad_alloc();
  if (void* memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  if (until_failure > 0 && --until_failure == 0) return nullptr;
  return std::malloc(bytes);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace catenary::testing {
namespace {

void wait_for_go(void* go) {
  while (!static_cast<std::atomic<bool>*>(go)->load()) std::this_thread::yield();
}

// Two communicators that share a stream, so that a group runs them beside it; behind a function
// that goes on when it may, so that there is something to wait for.
struct Pair {
  Pair() {
    for (ncclComm_t& comm : comms) {
      require_success(ncclCommInitRank(&comm, 1, new_unique_id(), 0), "ncclCommInitRank");
    }
    require(catLaunchHostFunc(stream, wait_for_go, &go) == catSuccess, "catLaunchHostFunc");
  }
  ~Pair() {
    for (ncclComm_t comm : comms) ncclCommAbort(comm);
  }

  ncclResult_t sum_in_a_group() {
    ncclGroupStart();
    for (int i = 0; i < 2; ++i) {
      ncclAllReduce(&from[i], &to[i], 1, ncclFloat32, ncclSum, comms[i], stream);
    }
    return ncclGroupEnd();
  }
  bool is_well() {
    ncclResult_t states[2] = {};
    for (int i = 0; i < 2; ++i) ncclCommGetAsyncError(comms[i], &states[i]);
    return states[0] == ncclSuccess && states[1] == ncclSuccess;
  }

  std::atomic<bool> go{false};
  TestStream stream;
  ncclComm_t comms[2] = {};
  float from[2] = {3, 4};
  float to[2] = {};
};

TEST(NoMemory, for_any_allocation_of_a_group_is_an_error_and_not_the_end) {
  int failures = 0;
  for (int which = 1;; ++which) {
    ASSERT_LT(which, 10'000);
    Pair pair;
    until_failure = which;
    const ncclResult_t result = pair.sum_in_a_group();
    const bool has_failed = until_failure == 0;
    until_failure = 0;
    pair.go = true;
    pair.stream.finish();
    if (result == ncclSuccess && pair.is_well()) {
      EXPECT_EQ(pair.to[0], 3) << which;
      EXPECT_EQ(pair.to[1], 4) << which;
    }
    if (has_failed) {
      ++failures;
      continue;
    }
    EXPECT_EQ(result, ncclSuccess);
    EXPECT_TRUE(pair.is_well());
    break;
  }
  EXPECT_GT(failures, 20);  // the library's own are among them
}

// What a call has begun without a run waits for a rank that comes later.
TEST(NoMemory, for_what_begins_in_the_call_is_an_error_of_that_call) {
  int failures = 0;
  for (int which = 1;; ++which) {
    ASSERT_LT(which, 10'000);
    ncclComm_t comms[2] = {};
    require_success(ncclCommInitAll(comms, 2, nullptr), "ncclCommInitAll");
    float values[2] = {3, 4};
    const auto sum = [&](int rank) {
      return ncclAllReduce(&values[rank], &values[rank], 1, ncclFloat32, ncclSum, comms[rank],
                           nullptr);
    };
    // What is allocated once in a process is not in the way of what each call needs.
    if (which == 1) {
      for (const int rank : {0, 1}) EXPECT_EQ(sum(rank), ncclSuccess);
      for (ncclComm_t comm : comms) ncclCommAbort(comm);
      require_success(ncclCommInitAll(comms, 2, nullptr), "ncclCommInitAll");
      values[0] = 3;
      values[1] = 4;
    }
    until_failure = which;
    const ncclResult_t result = sum(0);
    const bool has_failed = until_failure == 0;
    until_failure = 0;
    ncclResult_t state = ncclSuccess;
    ncclCommGetAsyncError(comms[0], &state);
    EXPECT_EQ(result == ncclSuccess, state == ncclSuccess) << which << ": told by one only";
    if (result == ncclSuccess) {
      EXPECT_EQ(sum(1), ncclSuccess);
      for (const int device : {0, 1}) {
        require(catSetDevice(device) == catSuccess, "catSetDevice");
        require(catStreamSynchronize(nullptr) == catSuccess, "catStreamSynchronize");
      }
      EXPECT_EQ(values[0], 7) << which;
      EXPECT_EQ(values[1], 7) << which;
    }
    for (ncclComm_t comm : comms) ncclCommAbort(comm);
    require(catSetDevice(0) == catSuccess, "catSetDevice");
    if (!has_failed) break;
    ++failures;
  }
  EXPECT_GT(failures, 20);
}

}  // namespace
}  // namespace catenary::testing
