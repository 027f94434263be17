// Run: one process's part of a whole run, from the first communicator to the exit status.
//
// Each thread has a Worker; thread 0 is the caller's and speaks with the other processes. All
// processes and threads go through the same measurements in the same order; process 0 shows them.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "bench/perf/collective_test.h"
#include "bench/perf/json_report.h"
#include "bench/perf/launcher.h"
#include "bench/perf/options.h"
#include "bench/perf/result.h"
#include "bench/perf/table.h"
#include "bench/perf/team.h"
#include "bench/perf/worker.h"
#include "bench/perf/world.h"

namespace catenary::perf {

class Run {
 public:
  Run(const CollectiveTest& test, const Options& options, Launcher& launcher, int argc,
      char** argv);

  // Returns the exit status of this process. Failures end all processes from within.
  int execute();

 private:
  // Resident bytes of this process at three times.
  struct Memory {
    double buffers = 0;
    double before = 0;
    double initialized = 0;
    double end = 0;
  };

  bool shows() const { return world_.place().process == 0; }
  void limit_sizes_to_memory();
  void create_workers();
  void open_reports();
  void join_together(const ncclUniqueId& id);
  void run_thread(int thread, const ncclUniqueId& id);
  void sweep(int thread);
  void run_series(int thread, const DataType& type, const ReductionName& reduction, int root);
  void measure_size(int thread, Request request, std::size_t count);
  void record(const Row& row);
  void show_memory();
  Summary summary() const;
  int conclude();
  [[noreturn]] void fail(const std::string& message);

  const CollectiveTest& test_;
  Options options_;
  Launcher& launcher_;
  const int argc_;
  char** const argv_;
  const std::string program_;
  const World world_;
  Team team_;
  Table table_;
  std::optional<JsonReport> json_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::mutex reporting_;  // guards json_, and who is the first to fail
  Memory memory_;

  // Thread 0 only; the same on every process.
  std::uint64_t wrong_ = 0;
  double bus_gbs_sum_ = 0;
  int measurements_ = 0;
  int unnoticed_damage_ = 0;
};

}  // namespace catenary::perf
