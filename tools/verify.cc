// catenary verify: proves algorithms, rank count by rank count.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <ctime>
#include <functional>
#include <future>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/collective/algorithms.h"
#include "src/proof/survey.h"
#include "src/topology/machine.h"
#include "tools/arguments.h"
#include "tools/verb.h"

namespace catenary {
namespace {

using namespace proof;

constexpr char kUsage[] =
    R"(usage: catenary verify --all [options]
       catenary verify <collective> [<algorithm>] [options]

Proves that schedules do what their collective means, by running them on fingerprints: right
results from every rank's part once, sends and receives that pair up, no deadlock, in place too,
no more scratch than declared, and the same bits on all ranks. Up to 64 ranks every rank count,
root, lane and box is proved; above, a sample: 65, 96, 100, 127, 128, 257, 512, 1000 and 4096 ranks.
Pairs of two levels run on several boxes of several ranks each; with 4096 ranks on 64 boxes of 64.

"all to": every number of ranks from 1 to that; "up to": the largest.

  --all            every algorithm of every collective
  --ranks N[-M]    only N ranks, or N to M; of those above 64, the sample
  --root R         only this root
  --box B          only machines of B ranks
  --slots S        only links of S slots
  --count N        only N elements, each as large as a slot
  --jobs J         J algorithms at a time (as many as there are cores, at most 4); with 4096 ranks
                   each takes up to 1.5 gigabytes of memory, in boxes of a few ranks more
  -v, --verbose    every rank count as it is proved
  --help           this text

Exit code 1 if something is wrong, with the rank, the step and what it is; 2 if there was nothing to
prove.
)";

struct Wish {
  bool all = false;
  bool verbose = false;
  int jobs = std::min(usable_cores(), 4);
  std::optional<Collective> collective;
  std::string algorithm;
  Scope scope;
};

void take_ranks(const std::string& text, Scope& scope) {
  const NumberRange ranks = range_of("ranks", text, 1, 65536);
  scope.from_ranks = ranks.first;
  scope.to_ranks = ranks.last;
}

[[noreturn]] void refuse(const std::string& what) {
  throw_error(ErrorCode::kInvalidUsage, "%s", what.c_str());
}

// False if the usage was asked for. Throws Error for what is no wish.
bool read_wish(int argc, char** argv, Wish& wish) {
  constexpr option kOptions[] = {
      {"all", no_argument, nullptr, 'a'},         {"ranks", required_argument, nullptr, 'n'},
      {"root", required_argument, nullptr, 'r'},  {"box", required_argument, nullptr, 'b'},
      {"slots", required_argument, nullptr, 's'}, {"count", required_argument, nullptr, 'c'},
      {"jobs", required_argument, nullptr, 'j'},  {"verbose", no_argument, nullptr, 'v'},
      {"help", no_argument, nullptr, 'h'},        {}};
  for (int found; (found = next_option(argc, argv, "hv", kOptions)) != -1;) {
    switch (found) {
      case 'a': wish.all = true; break;
      case 'n': take_ranks(optarg, wish.scope); break;
      case 'r': wish.scope.root = number_of("root", optarg, 0, 65535); break;
      case 'b': wish.scope.box = number_of("box", optarg, 1, 65536); break;
      case 's': wish.scope.slots = number_of("slots", optarg, 2u, 1024u); break;
      case 'c': wish.scope.count = number_of<std::size_t>("count", optarg, 0, 1 << 24); break;
      case 'j': wish.jobs = number_of("jobs", optarg, 1, 64); break;
      case 'v': wish.verbose = true; break;
      default: return false;  // --help
    }
  }
  if (optind < argc) wish.collective = collective_of(argv[optind++]);
  if (optind < argc) wish.algorithm = argv[optind++];
  refuse_more(argc, argv, optind);
  if (wish.all && wish.collective) refuse("--all needs no collective beside it");
  if (!wish.all && !wish.collective) refuse("name a collective, or give --all");
  if (rank_counts(wish.scope).empty()) {
    refuse(format("no number of ranks from %d to %d is in the sample; name one number",
                  wish.scope.from_ranks, wish.scope.to_ranks));
  }
  if (wish.collective && wish.scope.root && !has_root(*wish.collective)) {
    refuse(std::string(name_of(*wish.collective)) + " has no root");
  }
  if (wish.scope.root.value_or(0) >= wish.scope.to_ranks) {
    refuse(format("--root %d is none of %d ranks", *wish.scope.root, wish.scope.to_ranks));
  }
  return true;
}

bool is_wished(const Wish& wish, const Algorithm& algorithm) {
  if (wish.all) return true;
  return performs(algorithm, *wish.collective) &&
         (wish.algorithm.empty() || wish.algorithm == algorithm.name);
}

std::string title_of(Collective collective, const Algorithm& algorithm) {
  return format("%-14s %-42s", std::string(name_of(collective)).c_str(),
                std::string(algorithm.name).c_str());
}

double seconds_since(std::int64_t start_ns) {
  return static_cast<double>(now_ns() - start_ns) * 1e-9;
}

// What is on its way goes to a terminal only, and to a line of its own if every rank count is asked
// for. Any thread.
class Progress {
 public:
  explicit Progress(bool verbose) : verbose_(verbose), to_terminal_(isatty(STDERR_FILENO) == 1) {}

  void show(const Algorithm& algorithm, int ranks) {
    const std::scoped_lock lock(mutex_);
    const std::string title = title_of(algorithm.collective, algorithm);
    if (verbose_) {
      std::fprintf(stderr, "%s %d ranks\n", title.c_str(), ranks);
    } else if (to_terminal_) {
      std::fprintf(stderr, "\r%s %d ranks\033[K", title.c_str(), ranks);
    }
  }
  // Prints what stays, in its place.
  void make_way(const std::function<void()>& print) {
    const std::scoped_lock lock(mutex_);
    if (to_terminal_ && !verbose_) std::fprintf(stderr, "\r\033[K");
    print();
  }

 private:
  const bool verbose_;
  const bool to_terminal_;
  std::mutex mutex_;
};

struct Result {
  Proof proof;
  double seconds = 0;
};
// With memory for it.
using Task = std::packaged_task<Result(Checker&)>;

Task task_of(const Algorithm& algorithm, const Scope& scope, Progress& progress) {
  return Task([&](Checker& checker) {
    const std::int64_t begin = now_ns();
    int ranks = 0;
    const auto show = [&](const ProofCase& which) {
      if (which.ranks != ranks) progress.show(algorithm, which.ranks);
      ranks = which.ranks;
    };
    Proof proof = prove(checker, algorithm, scope, show);
    return Result{std::move(proof), seconds_since(begin)};
  });
}

// Takes one task after the other, until it is destroyed.
class Workers {
 public:
  Workers(std::vector<Task>& tasks, int count) : tasks_(tasks) {
    for (int i = 0; i < count; ++i) threads_.emplace_back([this] { work(); });
  }
  Workers(const Workers&) = delete;
  ~Workers() { next_ = tasks_.size(); }

 private:
  void work() {
    Checker checker;
    for (std::size_t i; (i = next_.fetch_add(1)) < tasks_.size();) tasks_[i](checker);
  }

  std::vector<Task>& tasks_;
  std::atomic<std::size_t> next_ = 0;
  std::vector<std::jthread> threads_;
};

void print_row(const Wish& wish, const Algorithm& algorithm, const Proof& proof, double seconds) {
  const bool begins_with_one = wish.scope.from_ranks == 1 && proof.cases > 0;
  const std::string all_to = begins_with_one ? std::to_string(proof.every_ranks) : "-";
  std::string scratch = "-";
  if (proof.scratch_chunks > 0) {
    scratch = format("%d (%d ranks)", proof.scratch_chunks, proof.scratch_ranks);
  }
  std::printf("%s %9llu %6s %6d %17s %8.1f %7.2f  %s\n",
              title_of(algorithm.collective, algorithm).c_str(),
              static_cast<unsigned long long>(proof.cases), all_to.c_str(),
              proof.cases == 0 ? 0 : proof.most_ranks, scratch.c_str(),
              static_cast<double>(proof.moves) * 1e-6, seconds,
              !proof.fault.empty() ? "WRONG"
              : proof.cases == 0   ? "no such case"
                                   : "proved");
  if (!proof.fault.empty()) std::printf("  %s\n", proof.fault.c_str());
  std::fflush(stdout);
}

// Collectives that run another's algorithms are proved with them.
void print_forms(const Wish& wish, const std::vector<const Algorithm*>& proved) {
  for (int i = 0; i < kCollectiveCount; ++i) {
    const auto form = static_cast<Collective>(i);
    if (twin_of(form) == form || (!wish.all && wish.collective != form)) continue;
    for (const Algorithm* algorithm : proved) {
      if (find_algorithm(form, algorithm->name) != algorithm) continue;
      std::printf("%s proved with %s: %s\n", title_of(form, *algorithm).c_str(),
                  std::string(name_of(algorithm->collective)).c_str(),
                  is_uneven(form) ? "no part travels or rests under another's length"
                                  : "all hear of all, by messages that are sent even if empty");
    }
  }
}

// Of a range whose end is not in the sample, else nothing.
void print_sample(const Scope& scope) {
  const std::vector<int> counts = rank_counts(scope);
  if (counts.back() == scope.to_ranks) return;
  std::string above;
  for (const int ranks : counts) {
    if (ranks > kEveryRanks) above += format("%s%d", above.empty() ? "" : ", ", ranks);
  }
  std::printf("above %d ranks of the sample: %s (name one number for another)\n", kEveryRanks,
              above.empty() ? "none" : above.c_str());
}

// Throws if the collective has no such algorithm.
void check_names(const Wish& wish) {
  if (std::ranges::any_of(algorithms(), [&](const Algorithm& a) { return is_wished(wish, a); })) {
    return;
  }
  const std::string collective(name_of(*wish.collective));
  throw_error(ErrorCode::kInvalidUsage, "there is no algorithm \"%s\" of %s: see catenary list",
              wish.algorithm.c_str(), collective.c_str());
}

int verify(const Wish& wish) {
  check_names(wish);
  std::printf("%-14s %-42s %9s %6s %6s %17s %8s %7s\n", "collective", "algorithm", "cases",
              "all to", "up to", "scratch chunks", "Mmoves", "s");
  Progress progress(wish.verbose);
  const std::int64_t start = now_ns();
  std::vector<const Algorithm*> wished;
  std::vector<Task> tasks;
  for (const Algorithm& algorithm : algorithms()) {
    if (!is_wished(wish, algorithm)) continue;
    wished.push_back(&algorithm);
    tasks.push_back(task_of(algorithm, wish.scope, progress));
  }
  const Workers workers(tasks, wish.jobs);
  std::vector<const Algorithm*> proved;
  int wrong = 0;
  int without = 0;
  std::uint64_t cases = 0;
  for (std::size_t i = 0; i < wished.size(); ++i) {
    const Result result = tasks[i].get_future().get();
    const Proof& proof = result.proof;
    progress.make_way([&] { print_row(wish, *wished[i], proof, result.seconds); });
    cases += proof.cases;
    if (proof.fault.empty() && proof.cases > 0) {
      proved.push_back(wished[i]);
    } else {
      ++(proof.fault.empty() ? without : wrong);
    }
  }
  print_forms(wish, proved);
  print_sample(wish.scope);
  std::printf("\n%zu algorithm%s proved in %llu case%s, %d wrong, %.1f s (processor %.1f s)\n",
              proved.size(), proved.size() == 1 ? "" : "s", static_cast<unsigned long long>(cases),
              cases == 1 ? "" : "s", wrong, seconds_since(start),
              static_cast<double>(std::clock()) / CLOCKS_PER_SEC);
  if (without > 0) {
    std::printf("%d %s no case among those asked for, only with other ranks, roots or boxes\n",
                without, without == 1 ? "has" : "have");
  }
  if (proved.empty() && wrong == 0) {
    throw_error(
        ErrorCode::kInvalidArgument,
        "nothing was proved: none of these algorithms runs on such ranks, roots or boxes; pairs of "
        "two levels run on several boxes of several ranks each");
  }
  return wrong == 0 ? 0 : 1;
}

}  // namespace

int run_verify(int argc, char** argv) {
  Wish wish;
  if (read_wish(argc, argv, wish)) return verify(wish);
  std::fputs(kUsage, stdout);
  return 0;
}

}  // namespace catenary
