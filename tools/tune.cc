// catenary tune: measures this machine and keeps what the model of time needs to know of it, or
// reports how well the choices are that follow from it.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/collective/select.h"
#include "src/collective/tuning.h"
#include "src/comm/tuning_file.h"
#include "src/topology/machine.h"
#include "tools/arguments.h"
#include "tools/fit.h"
#include "tools/measure.h"
#include "tools/other_load.h"
#include "tools/report.h"
#include "tools/verb.h"

namespace catenary {
namespace {

constexpr char kHelp[] =
    "usage: catenary tune [options]\n"
    "\n"
    "Measures collectives on this machine, fits the parameters of the model that chooses\n"
    "algorithms, prints them, and keeps them where communicators find them. Keeps nothing, and\n"
    "ends with code 1, if other programs took more than a tenth of the cores meanwhile. Needs two\n"
    "cores: on one, ranks only take turns.\n"
    "\n"
    "  --output FILE     write them there (CATENARY_TUNING_FILE, or a file in the cache folder)\n"
    "  --print           only print what is in use now\n"
    "  --dry-run         write nothing\n"
    "  --anyway          keep them however busy the machine was\n"
    "  --seconds N       about how long to measure (20; with --quick 1); with fewer, fewer rounds\n"
    "  --quick           a rough idea only: two ranks and few sizes\n"
    "  --verbose         also print each time that was measured, beside the one expected\n"
    "  --from FILE       measure nothing: fit to times that --verbose printed there before\n"
    "  --report          instead: compare what the library chooses with the best algorithm,\n"
    "                    measured side by side, over collectives, sizes and ranks\n"
    "  --ranks LIST      of the report: numbers of ranks (2,4,8)\n"
    "  --wire KIND       of the report: ranks are processes, threads, or processes over the\n"
    "                    network of this machine (processes, threads or network)\n"
    "  --memory KIND     of the report: buffers are the ranks' own (private) or of ncclMemAlloc,\n"
    "                    where peers can read them (mapped)\n"
    "  --collectives LIST\n"
    "                    of the report: these, such as AllReduce,Gather (all that have algorithms\n"
    "                    to choose from, but for Gather and Scatter, which have two)\n"
    "  --rounds N        of the report: times that each point is measured at least (12); where "
    "the\n"
    "                    choice is neither clearly good nor clearly bad, up to 60\n";

struct Options {
  std::string output;
  std::string from;
  bool only_print = false;
  bool dry_run = false;
  bool verbose = false;
  bool quick = false;
  bool report = false;
  bool anyway = false;
  std::optional<int> seconds;
  ReportOptions report_options;
};

std::vector<int> numbers_of(const std::string& list) {
  std::vector<int> numbers;
  for (const std::string& word : words_of(list)) {
    numbers.push_back(number_of("ranks", word, 2, kMostRanks));
  }
  return numbers;
}

std::vector<Collective> collectives_of(const std::string& list) {
  std::vector<Collective> all(std::begin(kReportedCollectives), std::end(kReportedCollectives));
  all.insert(all.end(), std::begin(kOtherReportedCollectives),
             std::end(kOtherReportedCollectives));
  std::string known;
  for (const Collective collective : all) {
    known.append(known.empty() ? "" : ", ").append(name_of(collective));
  }
  std::vector<Collective> collectives;
  for (const std::string& word : words_of(list)) {
    const Collective collective = collective_of(word);
    if (std::ranges::find(all, collective) == all.end()) {
      throw_error(ErrorCode::kInvalidUsage,
                  "--collectives: \"%s\" is none of those that are reported: %s", word.c_str(),
                  known.c_str());
    }
    collectives.push_back(collective);
  }
  return collectives;
}

Wire wire_of(std::string_view word) {
  for (const Wire wire : {Wire::kProcesses, Wire::kThreads, Wire::kNetwork}) {
    if (word == name_of(wire)) return wire;
  }
  throw_error(ErrorCode::kInvalidUsage, "--wire: processes, threads or network, not \"%s\"",
              std::string(word).c_str());
}

bool is_mapped(std::string_view word) {
  if (word == "mapped" || word == "private") return word == "mapped";
  throw_error(ErrorCode::kInvalidUsage, "--memory: private or mapped, not \"%s\"",
              std::string(word).c_str());
}

constexpr option kOptions[] = {{"output", required_argument, nullptr, 'o'},
                               {"from", required_argument, nullptr, 'f'},
                               {"print", no_argument, nullptr, 'p'},
                               {"dry-run", no_argument, nullptr, 'd'},
                               {"seconds", required_argument, nullptr, 's'},
                               {"quick", no_argument, nullptr, 'q'},
                               {"verbose", no_argument, nullptr, 'v'},
                               {"report", no_argument, nullptr, 'r'},
                               {"ranks", required_argument, nullptr, 'n'},
                               {"collectives", required_argument, nullptr, 'c'},
                               {"wire", required_argument, nullptr, 'w'},
                               {"memory", required_argument, nullptr, 'm'},
                               {"rounds", required_argument, nullptr, 'R'},
                               {"anyway", no_argument, nullptr, 'a'},
                               {"help", no_argument, nullptr, 'h'},
                               {nullptr, 0, nullptr, 0}};
// What goes with --report only, and what never does.
constexpr std::string_view kOfReport = "ncwmR";
constexpr std::string_view kOfMeasuring = "ofdsqa";

const char* name_of_option(char letter) {
  const auto known = std::ranges::find(kOptions, int{letter}, &option::val);
  return known->name;
}

// An option that would be without effect is a mistake: of a report it may start a measurement that
// replaces what was in use.
void require_effect(const std::string& given) {
  const bool reports = given.find('r') != std::string::npos;
  for (const char letter : given) {
    if (!reports && kOfReport.find(letter) != std::string_view::npos) {
      throw_error(ErrorCode::kInvalidUsage, "--%s is for --report", name_of_option(letter));
    }
    if (reports && kOfMeasuring.find(letter) != std::string_view::npos) {
      throw_error(ErrorCode::kInvalidUsage, "--%s is not for --report", name_of_option(letter));
    }
  }
  if (given.size() > 1 && given.find('p') != std::string::npos) {
    throw_error(ErrorCode::kInvalidUsage, "--print goes with no other option");
  }
}

// Nothing if only help was wanted.
std::optional<Options> parse(int argc, char** argv) {
  std::string given;
  Options options;
  for (int choice = 0; (choice = next_option(argc, argv, "hv", kOptions)) != -1;) {
    given += static_cast<char>(choice);
    switch (choice) {
      case 'o': options.output = optarg; break;
      case 'f': options.from = optarg; break;
      case 'p': options.only_print = true; break;
      case 'd': options.dry_run = true; break;
      case 's': options.seconds = number_of("seconds", optarg, 1, 3600); break;
      case 'q': options.quick = true; break;
      case 'a': options.anyway = true; break;
      case 'v': options.verbose = options.report_options.verbose = true; break;
      case 'r': options.report = true; break;
      case 'n': options.report_options.ranks = numbers_of(optarg); break;
      case 'c': options.report_options.collectives = collectives_of(optarg); break;
      case 'w': options.report_options.wire = wire_of(optarg); break;
      case 'm': options.report_options.mapped = is_mapped(optarg); break;
      case 'R': options.report_options.rounds = number_of("rounds", optarg, 4, 255); break;
      default: return std::nullopt;  // --help
    }
  }
  refuse_more(argc, argv, optind);
  require_effect(given);
  return options;
}

// Those that run where all ranks share a machine.
std::vector<std::string> names_for(Collective collective) {
  std::vector<std::string> names;
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.collective != collective || !algorithm.runs_on({.ranks = 8, .box = 8})) continue;
    names.emplace_back(algorithm.name);
  }
  return names;
}

std::vector<Point> points_of(std::initializer_list<std::size_t> sizes) {
  std::vector<Point> points;
  for (const Collective collective : kReportedCollectives) {
    for (const std::size_t bytes : sizes)
      points.push_back({collective, bytes, names_for(collective)});
  }
  return points;
}

// Ranks run with the default parameters, so that the cuts are known.
void add_samples(const Crew& crew, const std::vector<Point>& points, const Times& times,
                 const Config& config, std::vector<Sample>& samples) {
  const Setting setting{.nranks = crew.nranks,
                        .machine = facts_of(crew),
                        .parameters = default_parameters(),
                        .cut = {.slice_bytes = static_cast<std::size_t>(config.slot_bytes),
                                .slots = static_cast<std::uint32_t>(config.slots)}};
  for (std::size_t i = 0; i < points.size(); ++i) {
    for (std::size_t j = 0; j < points[i].variants.size(); ++j) {
      Selector selector(setting, AlgorithmRules(points[i].variants[j], "", ""));
      const Selection& selection = selector.select(points[i].collective, points[i].bytes);
      samples.push_back({selection.algorithm, points[i].bytes, crew.nranks, facts_of(crew),
                         selection.cut, times[i][j].ns});
    }
  }
}

void print_samples(const std::vector<Sample>& samples, const CostParameters& parameters) {
  std::printf("# wire collective algorithm ranks bytes slice measured_us expected_us ratio\n");
  for (const Sample& sample : samples) {
    const double expected = predicted_ns(sample, parameters);
    std::printf("%-9s %-13s %-18s %d %9zu %6zu %11.2f %11.2f %5.2f\n",
                std::string(name_of(sample.machine.near)).c_str(),
                std::string(name_of(sample.algorithm->collective)).c_str(),
                std::string(sample.algorithm->name).c_str(), sample.nranks, sample.bytes,
                sample.cut.slice_bytes, sample.measured_ns / 1000, expected / 1000,
                expected / sample.measured_ns);
  }
}

// Of a line that somebody may have changed.
void require_sense(const Sample& sample, const std::string& line) {
  constexpr std::size_t kMostBytes = std::size_t{1} << 40;
  const bool has_ranks = sample.nranks >= 2 && sample.nranks <= kMostRanks;
  const bool has_bytes = sample.bytes > 0 && sample.bytes <= kMostBytes;
  const bool has_slices = sample.cut.slice_bytes > 0 && sample.cut.slice_bytes <= kMostBytes;
  const bool has_time = std::isfinite(sample.measured_ns) && sample.measured_ns > 0;
  if (has_ranks && has_bytes && has_slices && has_time) return;
  throw_error(ErrorCode::kInvalidArgument, "this is no measurement: %s", line.c_str());
}

// The samples of a kind of wire, among lines as print_samples() prints them.
std::vector<Sample> read_samples(const std::string& path, Wire wire) {
  std::ifstream file(path);
  if (!file) throw_error(ErrorCode::kInvalidArgument, "cannot read %s", path.c_str());
  std::vector<Sample> samples;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string wire_name;
    std::string collective;
    std::string name;
    Sample sample;
    if (!(words >> wire_name >> collective >> name >> sample.nranks >> sample.bytes >>
          sample.cut.slice_bytes >> sample.measured_ns) ||
        wire_name != name_of(wire)) {
      continue;
    }
    for (const Algorithm& algorithm : algorithms()) {
      if (algorithm.name == name && name_of(algorithm.collective) == collective) {
        sample.algorithm = &algorithm;
      }
    }
    if (sample.algorithm == nullptr) continue;
    require_sense(sample, line);
    sample.measured_ns *= 1000;
    sample.machine = facts_of({sample.nranks, wire});
    samples.push_back(sample);
  }
  return samples;
}

struct Stage {
  Wire wire;
  std::vector<Crew> crews;
  std::vector<Point> points;
  std::vector<std::string> free;
};

// What two ranks with a core each do not show keeps its defaults.
std::vector<Stage> quick_stages() {
  return {{Wire::kProcesses,
           {{2, Wire::kProcesses}},
           points_of({64, 32768, 1048576}),
           {"operation_ns", "step_ns", "local_byte_ns", "reduced_byte_ns", "processes_hop_ns",
            "processes_message_ns", "processes_byte_ns"}}};
}

// More ranks than that take long to measure.
constexpr int kLargestCrowd = 32;

std::vector<Stage> stages(int cores) {
  const int few = 2;
  const int room = std::clamp(cores, 2, 8);
  std::vector<Crew> crews = {{few, Wire::kProcesses}};
  if (room > few) crews.push_back({room, Wire::kProcesses});
  for (const int crowd : {4, 8, 2 * cores}) {
    const bool is_new = crowd > crews.back().nranks && crowd <= kLargestCrowd;
    if (crowd > cores && is_new) crews.push_back({crowd, Wire::kProcesses});
  }
  return {
      {Wire::kProcesses,
       crews,
       points_of({64, 2048, 32768, 262144, 2097152, 16777216}),
       {"operation_ns", "step_ns", "switch_ns", "turn_ns", "crowded_byte_ns", "local_byte_ns",
        "reduced_byte_ns", "memory_byte_ns", "shared_cache_bytes", "processes_hop_ns",
        "processes_message_ns", "processes_byte_ns"}},
      {Wire::kThreads,
       {{few, Wire::kThreads}},
       points_of({64, 32768, 2097152}),
       {"threads_hop_ns", "threads_message_ns", "threads_byte_ns"}},
      {Wire::kNetwork,
       {{few, Wire::kNetwork}},
       points_of({64, 32768, 2097152}),
       {"network_hop_ns", "network_message_ns", "network_byte_ns"}},
  };
}

// How far what was measured can be trusted.
struct Quality {
  bool is_quick = false;
  std::optional<double> others;  // the part of the cores' time that other programs took
  std::vector<double> spreads;   // of the times of each variant
};
constexpr double kBusy = 0.1;
constexpr int kRounds = 16;

double middle(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto half = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), half, values.end());
  return *half;
}

bool is_too_busy(const Quality& quality) { return quality.others && *quality.others > kBusy; }

std::string describe(const Quality& quality) {
  std::string text = quality.is_quick ? "Roughly measured" : "Measured";
  if (quality.others) {
    text += format(" while other programs took %.0f %% of the cores", 100 * *quality.others);
  }
  text += format("; half of the times of an algorithm lie within %.0f %%.",
                 100 * middle(quality.spreads));
  if (is_too_busy(quality)) {
    text += " That is too busy a machine: measure again when it is quiet.";
  }
  return text;
}

CostParameters measure_machine(const Options& options, Quality& quality) {
  // What was tuned before must not decide how this is cut.
  Config config;
  config.slot_bytes = Config::process().slot_bytes;
  config.slots = Config::process().slots;
  const std::vector<Stage> all = options.quick ? quick_stages() : stages(usable_cores());
  const OtherLoad other_load;
  quality.is_quick = options.quick;
  double bursts = 0;
  for (const Stage& stage : all) {
    double crews = 0;
    for (const Crew& crew : stage.crews) crews += crowding(crew);
    for (const Point& point : stage.points) {
      bursts += crews * static_cast<double>(point.variants.size());
    }
  }
  const int usual = options.quick ? 1 : 20;
  const double seconds = options.seconds.value_or(usual);
  // Long operations take as long as they take, so less time means fewer rounds.
  const int rounds = std::clamp(static_cast<int>(kRounds * seconds / usual), 4, kRounds);
  Effort effort{.least_rounds = rounds, .burst_ns = 0, .quantile = 0.15};
  effort.burst_ns = seconds * 1e9 / 2 / effort.least_rounds / bursts;
  CostParameters parameters = default_parameters();
  bool has_samples = false;
  for (const Stage& stage : all) {
    const std::string what(name_of(stage.wire));
    std::vector<Sample> samples;
    if (!options.from.empty()) samples = read_samples(options.from, stage.wire);
    for (const Crew& crew : options.from.empty() ? stage.crews : std::vector<Crew>()) {
      std::fprintf(stderr, "measuring %d ranks, %s\n", crew.nranks, what.c_str());
      const Times times = measure(crew, stage.points, effort, config, [](std::size_t) {});
      add_samples(crew, stage.points, times, config, samples);
      quality.others = other_load.share();
      for (const std::vector<Timing>& point : times) {
        for (const Timing& timing : point) quality.spreads.push_back(timing.spread);
      }
    }
    if (samples.empty()) continue;
    has_samples = true;
    parameters = fit(samples, parameters, stage.free);
    if (options.verbose) print_samples(samples, parameters);
    std::fprintf(stderr, "%s: the model is %.0f %% off on average\n", what.c_str(),
                 100 * mean_error(samples, parameters));
  }
  if (!has_samples) {
    throw_error(ErrorCode::kInvalidArgument,
                "%s holds no measurements, as `catenary tune --verbose` prints them",
                options.from.c_str());
  }
  return parameters;
}

void print_parameters(CostParameters parameters) {
  for (const Parameter& parameter : cost_parameter_table()) {
    std::printf("%-22s %14.6g  %s\n", parameter.name.c_str(), parameter.of(parameters),
                parameter.meaning.c_str());
  }
}

// On one core ranks only take turns, and nothing tells how fast messages go.
void require_cores(const Options& options) {
  if (!options.from.empty() || usable_cores() >= 2) return;
  throw_error(
      ErrorCode::kSystem,
      "tune needs two cores, and this process may use one only: nothing would show how fast "
      "messages go between cores; what was in use stays");
}

}  // namespace

int run_tune(int argc, char** argv) {
  const std::optional<Options> options = parse(argc, argv);
  if (!options) {
    std::fputs(kHelp, stdout);
    return 0;
  }
  if (options->report) return print_report(options->report_options);
  if (options->only_print) {
    const Tuning tuning = load_tuning(Config::process());
    std::printf("# %s\n# %s\n", tuned_machine().c_str(), tuning.origin.c_str());
    print_parameters(tuning.parameters);
    return 0;
  }
  const std::string path =
      options->output.empty() ? tuning_path(Config::process()) : options->output;
  if (path.empty() && !options->dry_run) {
    throw_error(ErrorCode::kInvalidUsage, "no place for the result: give --output FILE");
  }
  require_cores(*options);
  Quality quality;
  const CostParameters parameters = measure_machine(*options, quality);
  const std::string remark = options->from.empty() ? describe(quality) : "From " + options->from;
  std::printf("# %s\n", remark.c_str());
  print_parameters(parameters);
  if (options->dry_run) return 0;
  if (is_too_busy(quality) && !options->anyway) {
    std::fprintf(stderr,
                 "nothing is written to %s: on so busy a machine that would be no good; measure "
                 "again when it is quiet, or with --anyway\n",
                 path.c_str());
    return 1;
  }
  store_tuning(parameters, path, remark);
  std::fprintf(stderr, "written to %s\n", path.c_str());
  return 0;
}

}  // namespace catenary
