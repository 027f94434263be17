// overlap_bench: how much of communication is hidden where ranks compute, or sleep, meanwhile.
//
//   overlap_bench [bytes [mapped|private [ranks]]]
//
// Each rank is a process that enqueues an all-reduce of floats and an event behind it, works for a
// while, and after 20 of these waits ("overlapped"), or waits before it works ("in sequence"). Both
// are measured in turns, with the work alone and the all-reduce alone; microseconds an iteration,
// medians of 21 rounds, of rank 0. Work is a loop that keeps a core, or a sleep that leaves it to
// others. "hidden" is what overlapping saves, of all that communication adds in sequence.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "bench/perf/device_stream.h"
#include "bench/perf/failure.h"
#include "bench/perf/launcher.h"
#include "include/nccl.h"

namespace catenary::perf {
namespace {

using Clock = std::chrono::steady_clock;
using Microseconds = std::chrono::duration<double, std::micro>;

constexpr int kIterations = 20;
constexpr int kRehearsed = 5;  // before these, for a program does the same again and again
constexpr int kRounds = 21;
constexpr int kMostRanks = 64;

struct Settings {
  std::size_t bytes = std::size_t{1} << 20;
  bool mapped = true;
  int ranks = 2;
};

struct Work {
  enum class Kind { kLoop, kSleep };
  Kind kind;
  int us;

  const char* name() const { return kind == Kind::kLoop ? "loop" : "sleep"; }
  void run(double turns_per_us) const {
    if (kind == Kind::kSleep) {
      std::this_thread::sleep_for(std::chrono::microseconds(us));
    } else {
      loop(static_cast<long>(turns_per_us * us));
    }
  }
  // Each turn waits for the one before it.
  static void loop(long turns) {
    volatile double result = 1;
    double value = result;
    for (long i = 0; i < turns; ++i) value = value * 1.0000001 + 1e-9;
    result = value;
  }
};

enum Mode { kWorkAlone, kReduceAlone, kInSequence, kOverlapped, kModes };

class Rank {
 public:
  Rank(const Settings& settings, Launcher& launcher)
      : settings_(settings),
        launcher_(launcher),
        stream_(use_device(launcher.place().process), false) {
    const Place place = launcher.place();
    ncclUniqueId id;
    if (place.process == 0) check_nccl(ncclGetUniqueId(&id));
    launcher.broadcast(std::as_writable_bytes(std::span(&id, 1)), 0);
    check_nccl(ncclCommInitRank(&comm_, place.processes, id, place.process));
    input_ = allocate();
    output_ = allocate();
  }
  ~Rank() {
    ncclCommAbort(comm_);
    for (void* const buffer : {input_, output_}) {
      if (settings_.mapped) {
        ncclMemFree(buffer);
      } else {
        std::free(buffer);
      }
    }
  }
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  // All ranks loop at the same time, as they will.
  void calibrate() {
    constexpr long kTurns = 20'000'000;
    launcher_.barrier();
    const Clock::time_point begin = Clock::now();
    Work::loop(kTurns);
    turns_per_us_ = static_cast<double>(kTurns) / Microseconds(Clock::now() - begin).count();
  }

  // Who was woken first waits for the others where they communicate, before it is timed.
  std::array<double, kModes> measure(const Work& work) {
    std::array<std::vector<double>, kModes> times;
    for (int round = 0; round < kRounds; ++round) {
      for (int mode = 0; mode < kModes; ++mode) {
        launcher_.barrier();
        time(static_cast<Mode>(mode), work, kRehearsed);
        times.at(static_cast<std::size_t>(mode))
            .push_back(time(static_cast<Mode>(mode), work, kIterations));
      }
    }
    std::array<double, kModes> medians{};
    for (std::size_t mode = 0; mode < kModes; ++mode) {
      std::ranges::nth_element(times.at(mode), times.at(mode).begin() + kRounds / 2);
      medians.at(mode) = times.at(mode)[kRounds / 2];
    }
    return medians;
  }

 private:
  void* allocate() const {
    void* buffer = nullptr;
    if (settings_.mapped) {
      check_nccl(ncclMemAlloc(&buffer, settings_.bytes));
    } else if ((buffer = std::malloc(settings_.bytes)) == nullptr) {
      throw TestFailure("no memory for the buffers");
    }
    std::memset(buffer, 0, settings_.bytes);
    return buffer;
  }

  double time(Mode mode, const Work& work, int iterations) {
    const Clock::time_point begin = Clock::now();
    for (int i = 0; i < iterations; ++i) {
      if (mode != kWorkAlone) {
        check_nccl(ncclAllReduce(input_, output_, settings_.bytes / sizeof(float), ncclFloat,
                                 ncclSum, comm_, stream_.handle()));
        event_.record(stream_);
      }
      if (mode == kInSequence || mode == kReduceAlone) stream_.synchronize();
      if (mode != kReduceAlone) work.run(turns_per_us_);
    }
    stream_.synchronize();
    return Microseconds(Clock::now() - begin).count() / iterations;
  }

  const Settings& settings_;
  Launcher& launcher_;
  Stream stream_;
  Event event_;
  ncclComm_t comm_ = nullptr;
  void* input_ = nullptr;
  void* output_ = nullptr;
  double turns_per_us_ = 0;
};

void run(const Settings& settings, Launcher& launcher) {
  constexpr Work kWorks[] = {{Work::Kind::kLoop, 50},
                             {Work::Kind::kLoop, 200},
                             {Work::Kind::kLoop, 1000},
                             {Work::Kind::kSleep, 200},
                             {Work::Kind::kSleep, 1000}};
  const bool speaks = launcher.place().process == 0;
  Rank self(settings, launcher);
  self.calibrate();
  if (speaks) {
    std::printf("%zu bytes, %s buffers, %d ranks\n%16s %10s %12s %12s %12s %8s\n", settings.bytes,
                settings.mapped ? "mapped" : "private", settings.ranks, "work (us)", "alone",
                "all-reduce", "in sequence", "overlapped", "hidden");
  }
  for (const Work& work : kWorks) {
    const auto times = self.measure(work);
    if (!speaks) continue;
    const double added = times[kInSequence] - times[kWorkAlone];
    const double saved = times[kInSequence] - times[kOverlapped];
    std::printf("%10s %5d %10.1f %12.1f %12.1f %12.1f", work.name(), work.us, times[kWorkAlone],
                times[kReduceAlone], times[kInSequence], times[kOverlapped]);
    if (added > 0) std::printf(" %7.0f%%", 100 * saved / added);
    std::printf("\n");
    std::fflush(stdout);
  }
}

Settings parse(int argc, char** argv) {
  Settings settings;
  if (argc > 1) settings.bytes = std::strtoull(argv[1], nullptr, 10);
  if (argc > 2) settings.mapped = std::strcmp(argv[2], "mapped") == 0;
  if (argc > 3) settings.ranks = std::atoi(argv[3]);
  const bool is_known = argc < 3 || settings.mapped || std::strcmp(argv[2], "private") == 0;
  if (argc > 4 || settings.bytes < sizeof(float) || !is_known || settings.ranks < 1 ||
      settings.ranks > kMostRanks) {
    throw UsageError("usage: overlap_bench [bytes [mapped|private [ranks]]], up to 64 ranks");
  }
  return settings;
}

}  // namespace
}  // namespace catenary::perf

int main(int argc, char** argv) {
  using namespace catenary::perf;
  try {
    const Settings settings = parse(argc, argv);
    const std::unique_ptr<Launcher> launcher = fork_processes(settings.ranks);
    run(settings, *launcher);
    return EXIT_SUCCESS;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return EXIT_FAILURE;
  }
}
