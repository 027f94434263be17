// random_programs: runs random programs on Catenary and compares what they leave in memory, bit by
// bit, with what the reference says. Each program runs in processes of its own, so that one that
// crashes or hangs is found out like any other; of one that fails the actions that do not matter
// are left out, and the command is told that runs the rest again.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <optional>
#include <string>

#include "tests/random/execute.h"
#include "tests/random/program.h"
#include "tests/random/reference.h"
#include "tests/support/rank_group.h"

namespace catenary::testing {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kUsage =
    "usage: random_programs [--first SEED] [--seeds N] [--processes] [--timeout SECONDS]\n"
    "       random_programs --seed SEED [--processes] [--keep 3,7,9] [--times N] [--show]\n";
constexpr std::chrono::seconds kShrinking{60};

struct Settings {
  std::uint64_t first = 1;
  std::uint64_t seeds = 1;
  bool processes = false;
  int timeout_s = 60;
  int times = 1;
  bool show = false;
  std::optional<std::vector<int>> kept;
};

// Who drives the ranks: processes of threads of seats.
struct Crew {
  Shape shape;
  int seats = 1;
};

Crew crew_of(const Program& program, bool processes) {
  Dice dice(program.seed ^ 0x5eed);
  std::vector<Crew> all;
  for (int p = 1; p <= program.ranks; ++p) {
    for (int t = 1; t <= program.ranks / p; ++t) {
      if (program.ranks % (p * t) != 0 || (p > 1) != (processes && program.ranks > 1)) continue;
      all.push_back({{p, t}, program.ranks / (p * t)});
    }
  }
  // A thread or process a rank is what most people do.
  if (dice.one_in(2)) return processes ? Crew{{program.ranks, 1}, 1} : Crew{{1, program.ranks}, 1};
  return all[static_cast<std::size_t>(dice.roll(static_cast<int>(all.size())))];
}

[[noreturn]] void be_child(const Program& program, const Settings& settings, int out) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const std::vector<Registers> expected = run_reference(program);
  const Crew crew = crew_of(program, settings.processes);
  const auto body = [&](int thread, int, const ncclUniqueId& id) {
    execute(program, thread * crew.seats, crew.seats, id, expected);
  };
  std::string text;
  for (const std::string& failure : run_ranks(crew.shape, body, settings.timeout_s)) {
    text += failure + "\n";
  }
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t wrote = ::write(out, text.data() + at, text.size() - at);
    if (wrote <= 0) ::_exit(3);
    at += static_cast<std::size_t>(wrote);
  }
  std::fflush(nullptr);
  ::_exit(text.empty() ? 0 : 1);
}

// Reads until the child closes its end; false after the timeout.
bool read_all(int from, std::string& text, int timeout_s) {
  const auto until = Clock::now() + std::chrono::seconds(timeout_s);
  while (Clock::now() < until) {
    pollfd polled{from, POLLIN, 0};
    if (::poll(&polled, 1, 100) <= 0) continue;
    char buffer[4096];
    const ssize_t got = ::read(from, buffer, sizeof buffer);
    if (got <= 0) return true;
    text.append(buffer, static_cast<std::size_t>(got));
  }
  return false;
}

// What is wrong with the program, or nothing.
std::string run_once(const Program& program, const Settings& settings) {
  int pipe[2];
  if (::pipe2(pipe, O_CLOEXEC) != 0) return "cannot make a pipe";
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child < 0) return "cannot fork";
  if (child == 0) be_child(program, settings, pipe[1]);
  ::setpgid(child, child);
  ::close(pipe[1]);
  std::string text;
  const bool ended = read_all(pipe[0], text, settings.timeout_s);
  ::close(pipe[0]);
  if (!ended) text += "hangs\n";
  if (!ended || !text.empty()) ::kill(-child, SIGKILL);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (text.empty() && status != 0) text = "ended with status " + std::to_string(status) + "\n";
  return text;
}

std::string run_times(const Program& program, const Settings& settings, int times) {
  std::string text;
  for (int i = 0; i < times && text.empty(); ++i) text = run_once(program, settings);
  return text;
}

// Leaves out what the program fails without: halves first, then smaller pieces.
std::vector<int> shrink(const Program& program, std::vector<int> kept, Settings settings) {
  settings.timeout_s = std::min(settings.timeout_s, 10);
  const auto until = Clock::now() + kShrinking;
  for (std::size_t piece = std::max<std::size_t>(kept.size() / 2, 1); piece > 0; piece /= 2) {
    for (std::size_t at = 0; at < kept.size() && Clock::now() < until;) {
      std::vector<int> fewer = kept;
      const auto from = fewer.begin() + static_cast<std::ptrdiff_t>(at);
      fewer.erase(from, from + static_cast<std::ptrdiff_t>(std::min(piece, kept.size() - at)));
      if (run_times(keep(program, fewer), settings, 3).empty()) {
        at += piece;
      } else {
        kept = std::move(fewer);
      }
    }
  }
  return kept;
}

std::string join(const std::vector<int>& numbers) {
  std::string text;
  for (const int number : numbers) text += (text.empty() ? "" : ",") + std::to_string(number);
  return text;
}

void report(const Program& program, const std::vector<int>& kept, const Settings& settings,
            const std::string& failure) {
  const Crew crew = crew_of(program, settings.processes);
  std::printf("seed %llu fails, as %d processes of %d threads of %d ranks:\n%s",
              static_cast<unsigned long long>(program.seed), crew.shape.processes,
              crew.shape.threads, crew.seats, failure.c_str());
  const std::vector<int> fewer = shrink(program, kept, settings);
  std::printf("what is left of it:\n%s", describe(keep(program, fewer)).c_str());
  std::printf("again: random_programs --seed %llu%s --keep %s --times 10\n\n",
              static_cast<unsigned long long>(program.seed),
              settings.processes ? " --processes" : "", join(fewer).c_str());
  std::fflush(stdout);
}

bool run_seed(std::uint64_t seed, const Settings& settings) {
  const Program program = generate(seed);
  std::vector<int> kept(program.actions.size());
  std::iota(kept.begin(), kept.end(), 0);
  if (settings.kept) kept = *settings.kept;
  const Program chosen = keep(program, kept);
  if (settings.show) std::printf("%s", describe(chosen).c_str());
  const std::string failure = run_times(chosen, settings, settings.times);
  if (!failure.empty()) report(program, kept, settings, failure);
  return failure.empty();
}

std::vector<int> numbers_in(const char* text) {
  std::vector<int> numbers;
  for (const char* at = text; *at != '\0';) {
    char* end = nullptr;
    numbers.push_back(static_cast<int>(std::strtol(at, &end, 10)));
    if (end == at) break;
    at = *end == ',' ? end + 1 : end;
  }
  return numbers;
}

bool parse(int argc, char** argv, Settings& settings) {
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--processes") {
      settings.processes = true;
      continue;
    }
    if (flag == "--show") {
      settings.show = true;
      continue;
    }
    if (i + 1 == argc) return false;
    const char* value = argv[++i];
    if (flag == "--first" || flag == "--seed") {
      settings.first = std::strtoull(value, nullptr, 10);
    } else if (flag == "--seeds") {
      settings.seeds = std::strtoull(value, nullptr, 10);
    } else if (flag == "--timeout") {
      settings.timeout_s = std::atoi(value);
    } else if (flag == "--times") {
      settings.times = std::atoi(value);
    } else if (flag == "--keep") {
      settings.kept = numbers_in(value);
    } else {
      return false;
    }
  }
  return settings.seeds > 0 && settings.timeout_s > 0 && settings.times > 0;
}

int run(int argc, char** argv) {
  Settings settings;
  if (!parse(argc, argv, settings)) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  std::uint64_t failed = 0;
  for (std::uint64_t seed = settings.first; seed < settings.first + settings.seeds; ++seed) {
    if (!run_seed(seed, settings)) ++failed;
    if (failed == 10) break;  // it is not about one seed
  }
  std::printf("%llu programs, %llu of them wrong\n",
              static_cast<unsigned long long>(settings.seeds),
              static_cast<unsigned long long>(failed));
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace catenary::testing

int main(int argc, char** argv) { return catenary::testing::run(argc, argv); }
