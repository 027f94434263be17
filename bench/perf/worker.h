// Worker: one thread of the run, with its ranks: enqueues, waits, measures, checks.
//
// All workers of all processes call measure() with the same arguments in the same order.
#pragma once

#include <chrono>
#include <cstddef>
#include <vector>

#include "bench/perf/collective_test.h"
#include "bench/perf/options.h"
#include "bench/perf/rank.h"
#include "bench/perf/result.h"
#include "bench/perf/team.h"

namespace catenary::perf {

// One half of a row, to be measured.
struct Request {
  DataType type;
  ReductionName reduction;
  int root;
  Shape shape;
  bool in_place;
};

class Worker {
 public:
  Worker(const CollectiveTest& test, const Options& options, Team& team, int thread,
         std::vector<Rank> ranks);

  // What must happen before the first operation, by all threads of the process at once.
  void join_alone(const ncclUniqueId& id);
  void register_buffers();
  std::vector<Rank>& ranks() { return ranks_; }

  void begin_series(const DataType& type, Reduction reduction);
  void end_series();
  void warm_up(const Request& request);
  // The same on every worker.
  Side measure(const Request& request);

 private:
  using Clock = std::chrono::steady_clock;
  struct Timing {
    double seconds_each = 0;
    std::vector<double> iterations_us;
  };
  // The two buffers of a rank's call.
  struct Buffers {
    std::byte* area;  // in place, what holds both; else the receive buffer
    std::size_t area_bytes;
    std::byte* send;
    std::byte* recv;
  };

  Buffers buffers(const Rank& rank, const Request& request, int iteration) const;
  void enqueue(const Rank& rank, const Request& request, int iteration) const;
  void enqueue_iteration(const Request& request, int iteration);
  void wait();
  void rehearse(const Request& request);
  void line_up();
  void wait_or_abort();
  Timing time_iterations(const Request& request);
  std::uint64_t check(const Request& request, int number);
  void prepare(const Rank& rank, const Request& request, int number) const;
  std::uint64_t judge(const Rank& rank, const Request& request, int number);
  void spoil(const Rank& rank, const Request& request, int number) const;
  void report_wrong(const Rank& rank, const Request& request, const std::string& what);

  const CollectiveTest& test_;
  const Options& options_;
  Team& team_;
  const int thread_;
  std::vector<Rank> ranks_;
  int reports_left_ = 8;
};

}  // namespace catenary::perf
