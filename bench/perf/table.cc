#include "bench/perf/table.h"

#include <array>
#include <cstdio>
#include <ctime>

#include "include/nccl.h"

namespace catenary::perf {
namespace {

// The table is the one of this version of nccl-tests.
constexpr const char* kFormat = "nccl-tests version 2.19.6";

void print_title_line(bool per_iteration, bool timestamps, std::array<const char*, 5> left,
                      std::array<const char*, 4> side, std::array<const char*, 4> iteration,
                      const char* time_of_day) {
  std::printf("# %10s  %12s  %8s  %6s  %6s", left[0], left[1], left[2], left[3], left[4]);
  for (int twice = 0; twice < 2; ++twice) {
    std::printf("  %7s  %6s  %6s  %6s", side[0], side[1], side[2], side[3]);
    if (!per_iteration) continue;
    for (const char* title : iteration) std::printf("  %7s", title);
  }
  if (timestamps) std::printf("%21s", time_of_day);
  std::printf("\n");
}

// Seven characters for any time that is shorter than eleven days.
std::string seven_wide(double microseconds) {
  std::array<char, 32> text;
  const int decimals = microseconds < 9999.995 ? 2 : microseconds < 99999.95 ? 1 : 0;
  std::snprintf(text.data(), text.size(), "%7.*f", decimals, microseconds);
  return text.data();
}

}  // namespace

std::string timestamp() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  std::array<char, 32> text;
  std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S", &local);
  return text.data();
}

void Table::print_head(const std::string& program, int library_version,
                       std::span<const DeviceLine> devices) const {
  std::printf("# Catenary, in the format of %s nccl-headers=%d nccl-library=%d\n", kFormat,
              NCCL_VERSION_CODE, library_version);
  std::printf("# Collective test starting: %s\n", program.c_str());
  const bool factor = options_.step_factor > 1;
  std::printf(
      "# nThread %d nGpus %d minBytes %zu maxBytes %zu step: %zu(%s) warmup iters: %d iters: %d "
      "agg iters: %d validation: %d graph: 0 unalign: %zu memory: %s\n#\n",
      options_.threads, options_.gpus, options_.min_bytes, options_.max_bytes,
      factor ? options_.step_factor : options_.step_bytes, factor ? "factor" : "bytes",
      options_.warmup_iterations, options_.iterations, options_.aggregated, options_.checks,
      options_.unalign, name_of(options_.memory));
  if (options_.spoil) {
    std::printf(
        "# SPOILED: received data are damaged on purpose before they are checked; "
        "this run cannot pass\n#\n");
  }
  std::printf("# Using devices\n");
  for (const DeviceLine& line : devices) {
    std::printf("#  Rank %2d Group %2d Pid %6d on %10s device %2d [%s] %s\n", line.rank, line.group,
                line.pid, line.host, line.device, line.bus_id, line.info);
  }
  std::printf("#\n");
  std::fflush(stdout);
}

void Table::print_titles() const {
  const bool per_iteration = options_.per_iteration;
  const bool timestamps = options_.report_timestamps;
  const int width = 2 + 7 + 2 + 6 + 2 + 6 + 2 + 6 + (per_iteration ? 4 * 9 : 0);
  std::printf("# %10s  %12s  %8s  %6s  %6s%*s%*s\n", "", "", "", "", "", width, "out-of-place    ",
              width, "in-place      ");
  const char* time = options_.report_cpu_time ? "cputime" : "time";
  print_title_line(per_iteration, timestamps, {"size", "count", "type", "redop", "root"},
                   {time, "algbw", "busbw", "#wrong"}, {"i_min", "i_max", "i_p99", "i_cv%"},
                   "timestamp");
  print_title_line(per_iteration, timestamps, {"(B)", "(elements)", "", "", ""},
                   {"(us)", "(GB/s)", "(GB/s)", ""}, {"(us)", "(us)", "(us)", "(%)"}, "");
  std::fflush(stdout);
}

void Table::print_side(const Side& side) const {
  const std::string wrong = side.wrong ? std::to_string(*side.wrong) : "N/A";
  std::printf("  %s  %6.2f  %6.2f  %6s", seven_wide(side.time_us).c_str(), side.algorithm_gbs,
              side.bus_gbs, wrong.c_str());
  if (!side.iterations) return;
  const IterationStats& stats = *side.iterations;
  for (const double time : {stats.min_us, stats.max_us, stats.p99_us, stats.cv_pct}) {
    std::printf("  %s", seven_wide(time).c_str());
  }
}

void Table::print_row(const Row& row) const {
  std::printf("%12zu  %12zu  %8s  %6s  %6d", row.bytes, row.count, row.type.c_str(),
              row.reduction.c_str(), row.root);
  print_side(row.out_of_place);
  print_side(row.in_place);
  if (options_.report_timestamps) std::printf("%21s", timestamp().c_str());
  std::printf("\n");
  std::fflush(stdout);
}

void Table::print_tail(const std::string& program, const Summary& summary) const {
  std::printf("# Out of bounds values : %llu %s\n", static_cast<unsigned long long>(summary.wrong),
              summary.wrong == 0 ? "OK" : "FAILED");
  std::printf("# Avg bus bandwidth    : %g %s\n", summary.mean_bus_gbs,
              !summary.fast_enough   ? ""
              : *summary.fast_enough ? "OK"
                                     : "FAILED");
  std::printf("#\n# Collective test concluded: %s\n", program.c_str());
  std::fflush(stdout);
}

}  // namespace catenary::perf
