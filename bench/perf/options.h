// Options: the command line of a bandwidth tool, with the names, letters and defaults that
// nccl-tests has, plus --procs. A flag that has no meaning on host memory is refused, not ignored.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "bench/perf/data_type.h"

namespace catenary::perf {

// -a: whose time a row shows.
enum class Average { kRank0 = 0, kMean = 1, kMin = 2, kMax = 3 };

// -z: what happens after an operation.
enum class Blocking {
  kNone = 0,                  // iterations are enqueued back to back
  kWaitAndBarrier = 1,        // after each iteration, wait and meet all ranks
  kWait = 2,                  // after each iteration, wait
  kWaitAndUntimedBarrier = 3  // as 1, but the time to meet is not counted
};

// --memory: what buffers are made of.
enum class MemoryKind {
  kMapped,  // ncclMemAlloc: peers can map it and reach into it
  kPrivate  // malloc: only copies leave the process
};

struct Options {
  int procs = 1;
  int threads = 1;
  int gpus = 1;

  std::size_t min_bytes = std::size_t{32} << 20;
  std::size_t max_bytes = std::size_t{32} << 20;
  std::size_t step_bytes = std::size_t{1} << 20;
  std::size_t step_factor = 1;  // 1: add step_bytes

  int iterations = 20;
  int warmup_iterations = 1;
  int aggregated = 1;
  int cycles = 1;  // 0: for ever
  int checks = 1;  // check iterations for each size; 0: none

  std::vector<DataType> types;            // all that -d asks for
  std::vector<ReductionName> reductions;  // all that -o asks for
  std::optional<int> root = 0;            // nullopt: all

  bool parallel_init = false;
  Blocking blocking = Blocking::kNone;
  bool null_stream = false;
  int timeout_s = 0;  // 0: none
  bool report_cpu_time = false;
  bool report_timestamps = false;
  Average average = Average::kMean;
  MemoryKind memory = MemoryKind::kMapped;
  int registration = 0;
  bool memory_report = false;
  std::size_t unalign = 0;  // elements
  bool per_iteration = false;
  int per_iteration_skip = 0;
  std::string output_file;

  // Damages one received element before each check, to prove that checks notice. A run with it
  // never ends with status 0.
  bool spoil = false;

  int local_ranks() const { return threads * gpus; }
};

// nullopt if -h asked for help only. Throws UsageError.
std::optional<Options> parse_options(int argc, char** argv);

// As --memory spells it.
const char* name_of(MemoryKind kind);

// What -h prints.
std::string usage(const std::string& program);

// "8", "32M", "1G": bytes. Throws UsageError naming `flag`.
std::size_t parse_bytes(const std::string& flag, const std::string& text);

}  // namespace catenary::perf
