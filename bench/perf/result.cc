#include "bench/perf/result.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace catenary::perf {
namespace {

// Nearest rank: with few samples the 99th percentile is the maximum.
double percentile(const std::vector<double>& sorted, std::size_t percent) {
  const std::size_t rank = (sorted.size() * percent + 99) / 100;
  return sorted[std::min(sorted.size(), std::max<std::size_t>(rank, 1)) - 1];
}

}  // namespace

IterationStats iteration_stats(std::vector<std::vector<double>> per_process, int skipped) {
  IterationStats stats;
  stats.skipped = skipped;
  stats.times_us = per_process.front();
  for (const auto& times : per_process) {
    for (std::size_t i = 0; i < times.size(); ++i) {
      stats.times_us[i] = std::max(stats.times_us[i], times[i]);
    }
  }
  stats.per_process_max_times_us = std::move(per_process);

  std::vector<double> sorted(stats.times_us.begin() + skipped, stats.times_us.end());
  std::sort(sorted.begin(), sorted.end());
  const auto samples = static_cast<double>(sorted.size());
  stats.min_us = sorted.front();
  stats.max_us = sorted.back();
  stats.avg_us = std::accumulate(sorted.begin(), sorted.end(), 0.0) / samples;
  stats.p50_us = percentile(sorted, 50);
  stats.p95_us = percentile(sorted, 95);
  stats.p99_us = percentile(sorted, 99);
  double squares = 0;
  for (const double time : sorted) squares += (time - stats.avg_us) * (time - stats.avg_us);
  stats.stdev_us = std::sqrt(squares / samples);
  stats.cv_pct = stats.avg_us > 0 ? 100 * stats.stdev_us / stats.avg_us : 0;
  return stats;
}

}  // namespace catenary::perf
