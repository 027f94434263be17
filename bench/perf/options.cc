#include "bench/perf/options.h"

#include <getopt.h>

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "bench/perf/failure.h"

namespace catenary::perf {
namespace {

// Flags that have no letter.
enum LongOnly { kProcs = 1000, kMemory, kSpoil };

// One flag: what getopt and the reader of -h need to know.
struct Flag {
  const char* name;
  int letter;            // or LongOnly
  const char* argument;  // nullptr: takes none
  const char* help;      // nullptr: another spelling, or for our own tests
};

constexpr Flag kFlags[] = {
    {"procs", kProcs, "processes", "processes to fork on this machine, without a launcher (1)"},
    {"nthreads", 't', "threads", "threads of each process (1)"},
    {"ngpus", 'g', "devices", "simulated devices of each thread, a rank on each (1)"},
    {"minbytes", 'b', "bytes", "smallest size; K, M, G, T are powers of 1024 (32M)"},
    {"maxbytes", 'e', "bytes", "largest size (32M)"},
    {"stepbytes", 'i', "bytes", "what to add from size to size (1M)"},
    {"stepfactor", 'f', "factor", "what to multiply by from size to size, in place of -i"},
    {"iters", 'n', "count", "timed iterations (20)"},
    {"warmup_iters", 'w', "count", "iterations before, not timed (1)"},
    {"agg_iters", 'm', "count", "operations grouped into one iteration (1)"},
    {"run_cycles", 'N', "count", "how often to run the whole table, 0 for ever (1)"},
    {"check", 'c', "count", "checked iterations of each size, 0 for none (1)"},
    {"op", 'o', "op", "sum, prod, min, max, avg, mulsum or all (sum)"},
    {"datatype", 'd', "type",
     "int8 uint8 int32 uint32 int64 uint64 half float double bfloat16 f8e4m3 f8e5m2 all (float)"},
    {"root", 'r', "rank", "root of rooted operations; all or -1: each (0)"},
    {"parallel_init", 'p', "0/1", "each thread joins the communicator by itself (0)"},
    {"blocking", 'z', "0..3",
     "after each iteration 1: wait and meet all ranks, 2: wait, 3: as 1, meeting untimed (0)"},
    {"stream_null", 'y', "0/1", "use the default stream (0)"},
    {"timeout", 'T', "seconds", "give up on a measurement after that time (0: never)"},
    {"cudagraph", 'G', "count", "only 0: there are no graphs to capture on host memory"},
    {"report_cputime", 'C', "0/1", "show the time to enqueue, not to complete (0)"},
    {"report_timestamps", 'S', "0/1", "end each row with the time of day (0)"},
    {"output_file", 'J', "file.json", "write the results as JSON too"},
    {"average", 'a', "0..3", "time of 0: rank 0, 1: mean, 2: min, 3: max of all ranks (1)"},
    {"local_register", 'R', "0/1/2", "register buffers, 2: as symmetric windows (0)"},
    {"cta_policy", 'x', "policy", "only 0: a matter of GPUs"},
    {"device_implementation", 'D', "number", "only 0: a matter of GPUs"},
    {"device_cta_count", 'V', "count", "refused: a matter of GPUs"},
    {"memory", kMemory, "mapped|private",
     "buffers of ncclMemAlloc, which peers can map, or of malloc (mapped)"},
    {"memory_report", 'M', "0/1", "report memory use at the end (0)"},
    {"unalign", 'u', "index", "index of the first element used in each buffer (0)"},
    {"per_iter_timing", 'I', "0/1", "time each iteration, show max, p99 and variation (0)"},
    {"per_iter_skip", 'K', "count", "leading iterations that -I leaves out (0)"},
    {"spoil_results", kSpoil, nullptr, nullptr},
    {"help", 'h', nullptr, "this text"},
};

long long parse_number(const std::string& flag, const std::string& text, long long least,
                       long long most) {
  long long value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < least || value > most) {
    throw UsageError("--" + flag + " " + text + ": expected a number from " +
                     std::to_string(least) +
                     (most == std::numeric_limits<int>::max() ? std::string(" up")
                                                              : " to " + std::to_string(most)));
  }
  return value;
}

int parse_int(const std::string& flag, const std::string& text, int least,
              int most = std::numeric_limits<int>::max()) {
  return static_cast<int>(parse_number(flag, text, least, most));
}

bool parse_switch(const std::string& flag, const std::string& text) {
  return parse_int(flag, text, 0, 1) != 0;
}

std::vector<DataType> parse_types(const std::string& text) {
  if (text == "all") return {data_types().begin(), data_types().end()};
  if (const DataType* type = find_data_type(text)) return {*type};
  throw UsageError("--datatype " + text + ": no such data type");
}

std::vector<ReductionName> parse_reductions(const std::string& text) {
  if (text == "all") return {reductions().begin(), reductions().end()};
  if (const ReductionName* entry = find_reduction(text)) return {*entry};
  throw UsageError("--op " + text + ": no such operation");
}

std::string parse_output_file(const std::string& text) {
  const std::string suffix = ".json";
  if (text.size() < suffix.size() ||
      text.compare(text.size() - suffix.size(), suffix.size(), suffix) != 0) {
    throw UsageError("--output_file " + text + ": the name must end in .json, the only format");
  }
  return text;
}

// nccl-tests takes --memory for a long name of -M, so that 0 and 1 mean what they mean there.
void take_memory(Options& options, const std::string& text) {
  for (const MemoryKind kind : {MemoryKind::kMapped, MemoryKind::kPrivate}) {
    if (text == name_of(kind)) {
      options.memory = kind;
      return;
    }
  }
  if (text != "0" && text != "1") {
    throw UsageError("--memory " + text + ": expected mapped or private, or 0 or 1 as for -M");
  }
  options.memory_report = text == "1";
}

void refuse_unless_zero(const std::string& flag, const std::string& text, const char* reason) {
  if (parse_int(flag, text, 0) != 0) {
    throw UsageError("--" + flag + " " + text + " cannot work here: " + reason);
  }
}

// How much there is of everything: processes, sizes, iterations.
bool take_amount(Options& options, int letter, const std::string& flag, const std::string& text) {
  switch (letter) {
    case kProcs: options.procs = parse_int(flag, text, 1, 4096); return true;
    case 't': options.threads = parse_int(flag, text, 1, 4096); return true;
    case 'g': options.gpus = parse_int(flag, text, 1, 4096); return true;
    case 'b': options.min_bytes = parse_bytes(flag, text); return true;
    case 'e': options.max_bytes = parse_bytes(flag, text); return true;
    case 'i': options.step_bytes = parse_bytes(flag, text); return true;
    case 'f': options.step_factor = static_cast<std::size_t>(parse_int(flag, text, 1)); return true;
    case 'n': options.iterations = parse_int(flag, text, 1); return true;
    case 'w': options.warmup_iterations = parse_int(flag, text, 0); return true;
    case 'm': options.aggregated = parse_int(flag, text, 1); return true;
    case 'N': options.cycles = parse_int(flag, text, 0); return true;
    case 'c': options.checks = parse_int(flag, text, 0); return true;
    case 'u': options.unalign = static_cast<std::size_t>(parse_int(flag, text, 0)); return true;
    case 'T': options.timeout_s = parse_int(flag, text, 0); return true;
    case 'K': options.per_iteration_skip = parse_int(flag, text, 0); return true;
    default: return false;
  }
}

// What is run, how, and what is shown of it.
bool take_manner(Options& options, int letter, const std::string& flag, const std::string& text) {
  switch (letter) {
    case 'o': options.reductions = parse_reductions(text); return true;
    case 'd': options.types = parse_types(text); return true;
    case 'r':
      options.root.reset();
      if (text != "all" && text != "-1") options.root = parse_int(flag, text, 0);
      return true;
    case 'p': options.parallel_init = parse_switch(flag, text); return true;
    case 'z': options.blocking = static_cast<Blocking>(parse_int(flag, text, 0, 3)); return true;
    case 'y': options.null_stream = parse_switch(flag, text); return true;
    case 'C': options.report_cpu_time = parse_switch(flag, text); return true;
    case 'S': options.report_timestamps = parse_switch(flag, text); return true;
    case 'J': options.output_file = parse_output_file(text); return true;
    case 'a': options.average = static_cast<Average>(parse_int(flag, text, 0, 3)); return true;
    case 'R': options.registration = parse_int(flag, text, 0, 2); return true;
    case 'M': options.memory_report = parse_switch(flag, text); return true;
    case kMemory: take_memory(options, text); return true;
    case 'I': options.per_iteration = parse_switch(flag, text); return true;
    case kSpoil: options.spoil = true; return true;
    default: return false;
  }
}

void refuse_gpu_flag(int letter, const std::string& flag, const std::string& text) {
  switch (letter) {
    case 'G':
      return refuse_unless_zero(flag, text, "streams on host memory have no graphs to capture");
    case 'x': return refuse_unless_zero(flag, text, "there are no thread blocks on host memory");
    case 'D': return refuse_unless_zero(flag, text, "there is no device API on host memory");
    case 'V':
      throw UsageError("--" + flag + " cannot work here: there is no device API on host memory");
    default: throw std::logic_error("a flag of the table that nobody takes");
  }
}

void check_together(const Options& options) {
  if (options.min_bytes > options.max_bytes) {
    throw UsageError("--minbytes is larger than --maxbytes");
  }
  const bool several = options.min_bytes < options.max_bytes;
  if (several && options.step_factor > 1 && options.min_bytes == 0) {
    throw UsageError("--minbytes 0 never grows by --stepfactor; use --stepbytes");
  }
  if (several && options.step_factor == 1 && options.step_bytes == 0) {
    throw UsageError("--stepbytes 0 never gets from --minbytes to --maxbytes");
  }
  if (options.spoil && options.checks == 0) {
    throw UsageError("--spoil_results needs checks");
  }
  if (options.per_iteration && options.per_iteration_skip >= options.iterations) {
    throw UsageError("--per_iter_skip leaves no iteration of --iters");
  }
}

std::vector<option> long_options() {
  std::vector<option> options;
  for (const Flag& flag : kFlags) {
    options.push_back({flag.name, flag.argument == nullptr ? no_argument : required_argument,
                       nullptr, flag.letter});
  }
  options.push_back({nullptr, 0, nullptr, 0});
  return options;
}

std::string short_options() {
  std::string letters = ":";  // a missing argument is told apart from an unknown flag
  for (const Flag& flag : kFlags) {
    if (flag.letter >= kProcs) continue;
    letters += static_cast<char>(flag.letter);
    if (flag.argument != nullptr) letters += ':';
  }
  return letters;
}

const char* name_of_flag(int letter) {
  for (const Flag& flag : kFlags) {
    if (flag.letter == letter) return flag.name;
  }
  throw std::logic_error("a letter that is not in the table");
}

}  // namespace

const char* name_of(MemoryKind kind) { return kind == MemoryKind::kMapped ? "mapped" : "private"; }

std::size_t parse_bytes(const std::string& flag, const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string suffix(end, text.data() + text.size());
  int shift = 0;
  if (suffix == "K" || suffix == "k") shift = 10;
  if (suffix == "M" || suffix == "m") shift = 20;
  if (suffix == "G" || suffix == "g") shift = 30;
  if (suffix == "T" || suffix == "t") shift = 40;
  const double bytes = std::ldexp(value, shift);
  if (error != std::errc{} || (shift == 0 && !suffix.empty()) || !(value >= 0) || bytes > 0x1p62) {
    throw UsageError("--" + flag + " " + text + ": expected bytes, such as 8, 64K, 32M or 1G");
  }
  return static_cast<std::size_t>(bytes);
}

std::optional<Options> parse_options(int argc, char** argv) {
  Options options;
  options.types = parse_types("float");
  options.reductions = parse_reductions("sum");
  const std::vector<option> longs = long_options();
  const std::string letters = short_options();
  opterr = 0;
  optind = 1;
  for (;;) {
    const int at = optind;
    const int letter = getopt_long(argc, argv, letters.c_str(), longs.data(), nullptr);
    if (letter == -1) break;
    if (letter == 'h') return std::nullopt;
    if (letter == '?') throw UsageError(std::string("unknown flag ") + argv[at]);
    if (letter == ':') throw UsageError(std::string(argv[at]) + " needs a value");
    const std::string flag = name_of_flag(letter);
    const std::string text = optarg == nullptr ? "" : optarg;
    if (take_amount(options, letter, flag, text) || take_manner(options, letter, flag, text)) {
      continue;
    }
    refuse_gpu_flag(letter, flag, text);
  }
  if (optind < argc) throw UsageError(std::string("unexpected argument ") + argv[optind]);
  check_together(options);
  return options;
}

std::string usage(const std::string& program) {
  std::string text = "usage: " + program + " [flags]; defaults in parentheses\n";
  for (const Flag& flag : kFlags) {
    if (flag.help == nullptr) continue;
    std::string left = flag.letter < kProcs
                           ? std::string("  -") + static_cast<char>(flag.letter) + ", --"
                           : std::string("      --");
    left += flag.name;
    if (flag.argument != nullptr) left += std::string(" <") + flag.argument + ">";
    left.resize(std::max<std::size_t>(left.size() + 2, 38), ' ');
    text += left + flag.help + "\n";
  }
  return text +
         "environment: NCCL_TESTS_MIN_BW (GB/s), NCCL_TESTS_DEVICE (first device), "
         "NCCL_TESTS_SPLIT (AND, OR, MOD or DIV and a number)\n";
}

}  // namespace catenary::perf
