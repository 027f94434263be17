#include "tools/report.h"

#include <algorithm>
#include <cstdio>
#include <optional>

#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/collective/select.h"
#include "src/comm/tuning_file.h"
#include "tools/measure.h"
#include "tools/other_load.h"

namespace catenary {
namespace {

constexpr std::size_t kSizes[] = {8, 64, 512, 4096, 32768, 262144, 2097152, 16777216, 67108864};
constexpr double kClose = 1.1;
constexpr double kBurst_ns = 4e6;
constexpr double kPoint_ns = 1.5e9;

struct Tally {
  int points = 0;
  int close = 0;       // the default is close to the best algorithm
  int right = 0;       // the chosen algorithm, forced, is
  int repeatable = 0;  // the default and the same algorithm forced are close to each other
};

std::vector<Point> points_of(const std::vector<Collective>& collectives) {
  std::vector<Point> points;
  for (const Collective collective : collectives) {
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

// The first variant is the default.
void judge(const Crew& crew, const Point& point, const std::vector<Timing>& times, bool verbose,
           Tally& tally) {
  const auto best = std::ranges::find_if(times, &Timing::is_best) - times.begin();
  const std::string& chosen = point.variants[*point.judged];
  const double own = times[0].ns;
  const double forced = times[*point.judged].ns;
  const double least = times[static_cast<std::size_t>(best)].ns;
  ++tally.points;
  tally.close += own <= kClose * least;
  tally.right += forced <= kClose * least;
  tally.repeatable += own <= kClose * forced && forced <= kClose * own;
  std::printf("%-13s %5d %9zu  %-16s %10.2f  %-16s %10.2f %6.2f %6.2f%s\n",
              std::string(name_of(point.collective)).c_str(), crew.nranks, point.bytes,
              point.variants[static_cast<std::size_t>(best)].c_str(), least / 1000, chosen.c_str(),
              own / 1000, own / least, forced / least, forced > kClose * least ? "  *" : "");
  for (std::size_t i = 1; verbose && i < times.size(); ++i) {
    std::printf("#   %-16s %10.2f +-%2.0f %%\n", point.variants[i].c_str(), times[i].ns / 1000,
                50 * times[i].spread);
  }
  std::fflush(stdout);
}

double percent(int part, int whole) { return whole == 0 ? 0 : 100.0 * part / whole; }

}  // namespace

int print_report(const ReportOptions& options) {
  const Config& config = Config::process();
  const CostParameters parameters = load_tuning(config).parameters;
  const Cut links{static_cast<std::size_t>(config.slot_bytes),
                  static_cast<std::uint32_t>(config.slots)};
  const std::int64_t begin = now_ns();
  const OtherLoad other_load;
  Tally tally;
  std::printf(
      "# collective   ranks     bytes  best               time_us  chosen              "
      "time_us  ratio forced\n");
  for (const int nranks : options.ranks) {
    const Crew crew{nranks, options.wire, options.mapped};
    Selector selector(
        {.nranks = nranks, .machine = facts_of(crew), .parameters = parameters, .cut = links},
        AlgorithmRules());
    std::vector<Point> points = points_of(options.collectives);
    for (Point& point : points) {
      const Selection& chosen = selector.select(point.collective, point.bytes);
      const auto name = std::ranges::find(point.variants, chosen.algorithm->name);
      point.judged = static_cast<std::size_t>(name - point.variants.begin());
    }
    const Effort effort{.least_rounds = options.rounds,
                        .close = kClose,
                        .point_ns = kPoint_ns,
                        .burst_ns = kBurst_ns};
    const Times times = measure(crew, points, effort, config, [](std::size_t) {});
    for (std::size_t i = 0; i < points.size(); ++i) {
      judge(crew, points[i], times[i], options.verbose, tally);
    }
  }
  const std::optional<double> others = other_load.share();
  std::printf(
      "# %d points: the default is within 10 %% of the best algorithm in %.1f %%, the chosen\n"
      "# algorithm, forced, in %.1f %%; default and forced agree within 10 %% in %.1f %% (noise).\n"
      "# %.0f s; other programs took %s of the cores.\n",
      tally.points, percent(tally.close, tally.points), percent(tally.right, tally.points),
      percent(tally.repeatable, tally.points), static_cast<double>(now_ns() - begin) * 1e-9,
      others ? format("%.0f %%", 100 * *others).c_str() : "an unknown part");
  return 0;
}

}  // namespace catenary
