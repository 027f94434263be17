// A crew: ranks as threads, each with a device, a communicator and a stream of its own, for tests
// of semantics. What a rank's body throws is a failure of the test; its communicator is aborted
// then, so that the others do not wait for it.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "catenary/device.h"
#include "nccl.h"

namespace catenary::testing {

class TestStream {
 public:
  TestStream();
  ~TestStream();
  TestStream(const TestStream&) = delete;
  TestStream& operator=(const TestStream&) = delete;
  operator catStream_t() const { return stream_; }
  // Throws Failure if the stream reports an error.
  void finish();

 private:
  catStream_t stream_ = nullptr;
};

struct Seat {
  int rank;
  int nranks;
  ncclComm_t comm;
  catStream_t stream;
  int next() const { return (rank + 1) % nranks; }
  int previous() const { return (rank + nranks - 1) % nranks; }
  // Waits for the stream; throws Failure if it reports an error.
  void finish() const;
};

// Runs body on every rank of a new communicator. A body that ends the communicator itself sets
// seat.comm to null.
void run_crew(int nranks, const std::function<void(Seat&)>& body);

// Of two ranks: the first has begun a sum, and runs body; the second never begins it, and leaves
// only after that, since who waits is told of who leaves.
void run_with_an_idle_peer(const std::function<void(Seat&)>& body);

// The same without communicators: body(rank) in a thread each.
void run_side_by_side(int threads, const std::function<void(int)>& body);

// Throws Failure unless the call gave `expected`; says what it gave.
void require_result(ncclResult_t result, ncclResult_t expected, const std::string& what);

// Polls the communicator's asynchronous state until it is another one than success, or than in
// progress, and returns that; throws Failure after `timeout`.
ncclResult_t wait_for_failure(ncclComm_t comm, std::chrono::milliseconds timeout);
ncclResult_t wait_while_in_progress(ncclComm_t comm, std::chrono::milliseconds timeout);

ncclUniqueId new_unique_id();
ncclConfig_t non_blocking();
std::string last_error();
bool contains(const std::string& text, const std::string& part);

// Milliseconds since it was made.
class Stopwatch {
 public:
  double ms() const;

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace catenary::testing
