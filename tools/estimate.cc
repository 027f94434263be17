// catenary estimate: what the model of time expects of ranks that need not be there, and what it
// would choose for them.
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "src/base/config.h"
#include "src/base/error.h"
#include "src/collective/select.h"
#include "src/collective/tuning.h"
#include "src/comm/tuning_file.h"
#include "tools/arguments.h"
#include "tools/verb.h"

namespace catenary {
namespace {

constexpr char kHelp[] =
    R"(usage: catenary estimate <collective> --ranks N [options]

Prints for each size which algorithm would be chosen and how long the model of time expects an
operation to take: the same numbers by which communicators choose. The parameters are those that
`catenary tune` measured on this machine, or the defaults; all machines count as alike.

  --ranks N        as many ranks
  --box B          as many of them on each machine, which a network joins (all)
  --cores C        cores that the ranks of a machine share (one for each rank)
  --threads        ranks of a machine are threads of one process
  --sizes A,B,...  bytes of a rank's longer buffer (8,64,1K,8K,64K,512K,4M,32M,256M)
  --next K         also the K that would come next (2). Of long messages one may be faster by 5 %,
                   or 40 where ranks share cores: the model does not see what "direct" saves
                   where buffers are mapped
  --defaults       the default parameters, whatever was measured here
  --set NAME=VALUE another value of a parameter, as `catenary tune --print` names them
  --help           this text

CATENARY_ALGO and NCCL_ALGO hold here, too.
)";

constexpr int kMostRanks = 4096;
constexpr int kMostNext = 100;

struct Wish {
  Collective collective = Collective::kAllReduce;
  int ranks = 0;
  int box = 0;
  int cores = 0;
  int next = 2;
  bool are_threads = false;
  bool wants_defaults = false;
  std::vector<std::string> changes;
  std::vector<std::size_t> sizes = sizes_of("sizes", "8,64,1K,8K,64K,512K,4M,32M,256M");
};

constexpr option kOptions[] = {
    {"ranks", required_argument, nullptr, 'n'}, {"box", required_argument, nullptr, 'b'},
    {"cores", required_argument, nullptr, 'c'}, {"threads", no_argument, nullptr, 't'},
    {"sizes", required_argument, nullptr, 's'}, {"next", required_argument, nullptr, 'k'},
    {"defaults", no_argument, nullptr, 'd'},    {"help", no_argument, nullptr, 'h'},
    {"set", required_argument, nullptr, 'S'},   {nullptr, 0, nullptr, 0}};

// Nothing if help was asked for.
std::optional<Wish> read_wish(int argc, char** argv) {
  Wish wish;
  for (int found = 0; (found = next_option(argc, argv, "h", kOptions)) != -1;) {
    switch (found) {
      case 'n': wish.ranks = number_of("ranks", optarg, 1, kMostRanks); break;
      case 'b': wish.box = number_of("box", optarg, 1, kMostRanks); break;
      case 'c': wish.cores = number_of("cores", optarg, 1, kMostRanks); break;
      case 't': wish.are_threads = true; break;
      case 's': wish.sizes = sizes_of("sizes", optarg); break;
      case 'k': wish.next = number_of("next", optarg, 0, kMostNext); break;
      case 'S': wish.changes.emplace_back(optarg); break;
      case 'd': wish.wants_defaults = true; break;
      default: return std::nullopt;  // --help
    }
  }
  if (optind == argc) throw_error(ErrorCode::kInvalidUsage, "name a collective: see catenary list");
  refuse_more(argc, argv, optind + 1);
  wish.collective = collective_of(argv[optind]);
  if (wish.ranks == 0) throw_error(ErrorCode::kInvalidUsage, "--ranks is missing");
  if (is_point_to_point(wish.collective) || twin_of(wish.collective) != wish.collective) {
    throw_error(ErrorCode::kInvalidUsage,
                "%s has no choice of its own by size; NCCL_DEBUG=INFO with "
                "NCCL_DEBUG_SUBSYS=TUNING tells what runs",
                argv[optind]);
  }
  if (wish.box == 0) wish.box = wish.ranks;
  if (wish.ranks % wish.box != 0) {
    throw_error(ErrorCode::kInvalidUsage, "--box: %d ranks do not divide into machines of %d",
                wish.ranks, wish.box);
  }
  if (wish.cores == 0) wish.cores = wish.box;
  return wish;
}

// Of "name=value".
void change(CostParameters& parameters, const std::string& text) {
  const std::size_t equals = std::min(text.find('='), text.size());
  const std::string value = text.substr(std::min(equals + 1, text.size()));
  for (const Parameter& parameter : cost_parameter_table()) {
    if (parameter.name != text.substr(0, equals)) continue;
    char* end = nullptr;
    const double number = std::strtod(value.c_str(), &end);
    if (value.empty() || *end != '\0' || !(number >= parameter.least && number <= parameter.most)) {
      throw_error(ErrorCode::kInvalidUsage, "--set: %s is from %g to %g, not \"%s\"",
                  parameter.name.c_str(), parameter.least, parameter.most, value.c_str());
    }
    parameter.of(parameters) = number;
    return;
  }
  throw_error(ErrorCode::kInvalidUsage,
              "--set: \"%s\" changes no parameter that catenary tune --print names", text.c_str());
}

Tuning tuning_for(const Wish& wish, const Config& config) {
  Tuning tuning =
      wish.wants_defaults ? Tuning{default_parameters(), "the defaults"} : load_tuning(config);
  for (const std::string& text : wish.changes) {
    change(tuning.parameters, text);
    tuning.origin += ", " + text;
  }
  return tuning;
}

void print_head(const Wish& wish, const std::string& origin) {
  const int machines = wish.ranks / wish.box;
  std::printf("# %s of %d rank%s: %d on each of %d machine%s with %d core%s for them\n",
              std::string(name_of(wish.collective)).c_str(), wish.ranks, wish.ranks == 1 ? "" : "s",
              wish.box, machines, machines == 1 ? "" : "s", wish.cores, wish.cores == 1 ? "" : "s");
  std::printf("# parameters: %s\n", origin.c_str());
  std::printf("#%11s  %12s  %9s  %-30s%s\n", "bytes", "time_us", "algbw", "algorithm",
              wish.next > 0 ? "  and next" : "");
}

// Of sizes between the same powers of two communicators know one choice, and so does this. Whether
// an algorithm is printed behind it that would take less time.
bool print_row(const Wish& wish, std::size_t bytes, Selector& selector) {
  const Algorithm* const chosen = selector.select(wish.collective, bytes).algorithm;
  const double chosen_ns = selector.estimate_ns(wish.collective, bytes);
  std::printf("%12zu  %12.2f  %9.3f  %-30s", bytes, chosen_ns / 1000,
              static_cast<double>(bytes) / chosen_ns, std::string(chosen->name).c_str());
  int printed = 0;
  bool is_slower = false;
  for (const Selection& next : selector.candidates(wish.collective, bytes)) {
    if (next.algorithm == chosen || printed == wish.next) continue;
    std::printf("%s %s %.2f", printed++ == 0 ? " " : ",", std::string(next.algorithm->name).c_str(),
                next.time_ns / 1000);
    is_slower = is_slower || next.time_ns < chosen_ns;
  }
  std::printf("\n");
  return is_slower;
}

// Between machines, what plain TCP cuts long chunks into: Transport::longest_message().
std::size_t packet_bytes(const Wish& wish) {
  constexpr std::size_t kSocketPacketBytes = 61 * 1024;
  return wish.ranks > wish.box ? kSocketPacketBytes : SIZE_MAX;
}

}  // namespace

int run_estimate(int argc, char** argv) {
  const std::optional<Wish> wish = read_wish(argc, argv);
  if (!wish) {
    std::fputs(kHelp, stdout);
    return 0;
  }
  const Config& config = Config::process();
  const Tuning tuning = tuning_for(*wish, config);
  const MachineFacts machine{.local_ranks = wish->box,
                             .cores = wish->cores,
                             .box = wish->box,
                             .near = wish->are_threads ? Wire::kThreads : Wire::kProcesses,
                             .far = Wire::kNetwork,
                             .packet_bytes = packet_bytes(*wish)};
  const Cut links{static_cast<std::size_t>(config.slot_bytes),
                  static_cast<std::uint32_t>(config.slots)};
  Selector selector(
      {.nranks = wish->ranks, .machine = machine, .parameters = tuning.parameters, .cut = links},
      AlgorithmRules(config.algorithm, config.nccl_algo, config.nccl_proto));
  print_head(*wish, tuning.origin);
  const AlgorithmRules& rules = selector.rules();
  for (const std::string& remark : {rules.not_ruled(wish->collective),
                                    rules.passed_over({.ranks = wish->ranks, .box = wish->box})}) {
    if (!remark.empty()) std::printf("# %s\n", remark.c_str());
  }
  bool any_is_slower = false;
  for (const std::size_t bytes : wish->sizes) {
    any_is_slower = print_row(*wish, bytes, selector) || any_is_slower;
  }
  if (any_is_slower) {
    std::puts(
        "# What is nearly as fast is preferred where buffers of ncclMemAlloc gain by it\n"
        "# (docs/decisions/0013-choice-by-cost.md).");
  }
  return 0;
}

}  // namespace catenary
