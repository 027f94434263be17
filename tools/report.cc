#include "tools/report.h"

#include <algorithm>
#include <cstdio>

#include "src/base/clock.h"
#include "src/collective/select.h"
#include "src/comm/tuning_file.h"
#include "tools/measure.h"

namespace catenary {
namespace {

constexpr std::size_t kSizes[] = {8, 64, 512, 4096, 32768, 262144, 2097152, 16777216, 67108864};
constexpr double kClose = 1.1;
constexpr double kBurst_ns = 1.5e6;

struct Tally {
  int points = 0;
  int close = 0;       // the default is close to the best algorithm
  int right = 0;       // the chosen algorithm, forced, is
  int repeatable = 0;  // the default and the same algorithm forced are close to each other
};

std::vector<Point> all_points() {
  std::vector<Point> points;
  for (const Collective collective : kReportedCollectives) {
    for (const std::size_t bytes : kSizes) {
      Point point{collective, bytes, {""}};
      for (const Algorithm& algorithm : algorithms()) {
        if (algorithm.collective != collective) continue;
        if (!algorithm.runs_on({.ranks = 8, .box = 8})) continue;
        point.variants.emplace_back(algorithm.name);
      }
      points.push_back(std::move(point));
    }
  }
  return points;
}

void judge(const Crew& crew, const Point& point, const std::vector<double>& ns,
           const std::string& chosen, bool verbose, Tally& tally) {
  const auto best = std::min_element(ns.begin() + 1, ns.end()) - ns.begin();
  const auto name = std::find(point.variants.begin() + 1, point.variants.end(), chosen);
  const double forced = ns[static_cast<std::size_t>(name - point.variants.begin())];
  const double least = ns[static_cast<std::size_t>(best)];
  ++tally.points;
  tally.close += ns[0] <= kClose * least;
  tally.right += forced <= kClose * least;
  tally.repeatable += ns[0] <= kClose * forced && forced <= kClose * ns[0];
  std::printf("%-13s %5d %9zu  %-16s %10.2f  %-16s %10.2f %6.2f %6.2f%s\n",
              std::string(name_of(point.collective)).c_str(), crew.nranks, point.bytes,
              point.variants[static_cast<std::size_t>(best)].c_str(), least / 1000, chosen.c_str(),
              ns[0] / 1000, ns[0] / least, forced / least, forced > kClose * least ? "  *" : "");
  for (std::size_t i = 1; verbose && i < ns.size(); ++i) {
    std::printf("#   %-16s %10.2f\n", point.variants[i].c_str(), ns[i] / 1000);
  }
  std::fflush(stdout);
}

double percent(int part, int whole) { return whole == 0 ? 0 : 100.0 * part / whole; }

}  // namespace

int print_report(const ReportOptions& options) {
  const Config& config = Config::process();
  const std::vector<Point> points = all_points();
  const CostParameters parameters = load_tuning(config);
  const Cut links{static_cast<std::size_t>(config.slot_bytes),
                  static_cast<std::uint32_t>(config.slots)};
  const std::int64_t begin = now_ns();
  Tally tally;
  std::printf(
      "# collective   ranks     bytes  best               time_us  chosen              "
      "time_us  ratio forced\n");
  for (const int nranks : options.ranks) {
    const Crew crew{nranks, Wire::kProcesses};
    Selector selector(nranks, facts_of(crew), parameters, links, AlgorithmRules());
    const Times times = measure(crew, points, {.rounds = options.rounds, .burst_ns = kBurst_ns},
                                config, [](std::size_t) {});
    for (std::size_t i = 0; i < points.size(); ++i) {
      const Selection& chosen = selector.select(points[i].collective, points[i].bytes);
      judge(crew, points[i], times[i], std::string(chosen.algorithm->name), options.verbose, tally);
    }
  }
  std::printf(
      "# %d points: the default is within 10 %% of the best algorithm in %.1f %%, the chosen\n"
      "# algorithm, forced, in %.1f %%; default and forced agree within 10 %% in %.1f %% (noise).\n"
      "# %.0f s.\n",
      tally.points, percent(tally.close, tally.points), percent(tally.right, tally.points),
      percent(tally.repeatable, tally.points), static_cast<double>(now_ns() - begin) * 1e-9);
  return 0;
}

}  // namespace catenary
