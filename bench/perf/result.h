// The values that a run produces and the reports show.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace catenary::perf {

// Times of single iterations (-I), in microseconds.
struct IterationStats {
  int skipped = 0;
  double min_us = 0, max_us = 0, avg_us = 0, p50_us = 0, p95_us = 0, p99_us = 0;
  double stdev_us = 0, cv_pct = 0;
  std::vector<double> times_us;  // slowest process, each iteration, skipped ones too
  std::vector<std::vector<double>> per_process_max_times_us;
};

IterationStats iteration_stats(std::vector<std::vector<double>> per_process, int skipped);

// One half of a row: out of place or in place.
struct Side {
  double time_us = 0;
  double algorithm_gbs = 0;
  double bus_gbs = 0;
  std::optional<std::uint64_t> wrong;  // nullopt: not judged
  std::optional<IterationStats> iterations;
};

struct Row {
  std::size_t bytes = 0;
  std::size_t count = 0;
  std::string type;
  std::string reduction;
  int root = -1;
  Side out_of_place;
  Side in_place;
};

// One rank's line in the table's head. Trivially copyable: processes exchange it as bytes.
struct DeviceLine {
  int rank;
  int group;
  int pid;
  int device;
  char host[64];
  char bus_id[32];
  char info[64];
};

struct Summary {
  std::uint64_t wrong = 0;
  double mean_bus_gbs = 0;
  std::optional<bool> fast_enough;  // with NCCL_TESTS_MIN_BW

  bool okay() const { return wrong == 0 && fast_enough.value_or(true); }
};

}  // namespace catenary::perf
