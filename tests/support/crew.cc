#include "tests/support/crew.h"

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <thread>

#include "src/base/scope_exit.h"
#include "tests/support/rank_group.h"

namespace catenary::testing {

using std::chrono::milliseconds;

TestStream::TestStream() { require(catStreamCreate(&stream_) == catSuccess, "catStreamCreate"); }
TestStream::~TestStream() { catStreamDestroy(stream_); }
void TestStream::finish() {
  require(catStreamSynchronize(stream_) == catSuccess, "catStreamSynchronize");
}

void Seat::finish() const {
  require(catStreamSynchronize(stream) == catSuccess, "catStreamSynchronize");
}

void run_crew(int nranks, const std::function<void(Seat&)>& body) {
  // What one rank provokes must not meet another one that still joins.
  std::barrier joined(nranks);
  const auto failures = run_ranks({1, nranks}, [&](int rank, int n, const ncclUniqueId& id) {
    require(catSetDevice(rank) == catSuccess, "catSetDevice");
    TestStream stream;
    Seat seat{rank, n, nullptr, stream};
    const ncclResult_t made = ncclCommInitRank(&seat.comm, n, id, rank);
    joined.arrive_and_wait();
    require_success(made, "ncclCommInitRank");
    try {
      body(seat);
    } catch (...) {
      ncclCommAbort(seat.comm);
      throw;
    }
    require_success(ncclCommDestroy(seat.comm), "ncclCommDestroy");
  });
  for (const std::string& failure : failures) ADD_FAILURE() << failure;
}

void run_with_an_idle_peer(const std::function<void(Seat&)>& body) {
  std::atomic<bool> is_over{false};
  run_crew(2, [&](Seat& seat) {
    if (seat.rank == 1) {
      while (!is_over) std::this_thread::sleep_for(milliseconds(1));
      return;
    }
    const ScopeExit ending([&is_over] { is_over = true; });
    float one = 1;
    require_success(ncclAllReduce(&one, &one, 1, ncclFloat32, ncclSum, seat.comm, seat.stream),
                    "AllReduce");
    body(seat);
  });
}

void run_side_by_side(int threads, const std::function<void(int)>& body) {
  std::vector<std::thread> running;
  for (int i = 0; i < threads; ++i) {
    running.emplace_back([&body, i] {
      try {
        body(i);
      } catch (const Failure& failure) {
        ADD_FAILURE() << "thread " << i << ": " << failure.what;
      }
    });
  }
  for (std::thread& thread : running) thread.join();
}

void require_result(ncclResult_t result, ncclResult_t expected, const std::string& what) {
  if (result == expected) return;
  throw Failure{what + ": result " + std::to_string(result) + " where " + std::to_string(expected) +
                " was expected; the last error is: " + last_error()};
}

namespace {

ncclResult_t wait_while(ncclResult_t state, ncclComm_t comm, milliseconds timeout,
                        const char* what) {
  const Stopwatch watch;
  for (;;) {
    ncclResult_t result = ncclSuccess;
    require_success(ncclCommGetAsyncError(comm, &result), "ncclCommGetAsyncError");
    if (result != state) return result;
    if (watch.ms() > static_cast<double>(timeout.count())) throw Failure{what};
    std::this_thread::sleep_for(milliseconds(1));
  }
}

}  // namespace

ncclResult_t wait_for_failure(ncclComm_t comm, milliseconds timeout) {
  return wait_while(ncclSuccess, comm, timeout, "the communicator did not fail in time");
}

ncclResult_t wait_while_in_progress(ncclComm_t comm, milliseconds timeout) {
  return wait_while(ncclInProgress, comm, timeout, "the communicator is still in progress");
}

ncclUniqueId new_unique_id() {
  ncclUniqueId id;
  require_success(ncclGetUniqueId(&id), "ncclGetUniqueId");
  return id;
}

ncclConfig_t non_blocking() {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  return config;
}

std::string last_error() { return ncclGetLastError(nullptr); }

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

double Stopwatch::ms() const {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start_)
      .count();
}

}  // namespace catenary::testing
