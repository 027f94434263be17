// What the machine allows: the collectives of the plan as a few pinned threads do them when nothing
// costs time but moving cache lines and memory. One process stands for all ranks; it prints what
// the frame's workers print, and besides, in nanoseconds and GB/s
//   ping_pong NS                      a cache line from core to core, one way
//   copy BYTES ONE ALL                bytes copied per time, by one core, and by all of ours at
//   once
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "bench/peers/frame.h"
#include "bench/peers/limit_programs.h"
#include "bench/peers/meet.h"
#include "bench/peers/plan.h"

namespace {

using namespace limits;

constexpr std::size_t kPayload = 696;  // up to here data may travel right behind its number
constexpr std::size_t kStagedBytes = 64 << 10;   // up to here copying may beat meeting twice
constexpr std::size_t kStreamedBytes = 1 << 20;  // stores past the caches are tried from here on
constexpr int kMostThreads = 64;
constexpr double kAlike = 2;   // lines take as long as each other up to that many times as long
constexpr int kMostTimes = 3;  // to measure what cores move during

// Data and the number of the operation that they belong to, one behind the other.
struct alignas(128) Line {
  std::atomic<std::uint64_t> number{0};
  std::byte payload[kPayload];
};

// The threads, and where they meet: each has a line that the others look at.
class Team {
 public:
  explicit Team(int threads) : threads_(threads) {}
  int threads() const { return threads_; }

  void meet(int self, std::uint64_t& number) {
    ++number;
    lines_[self].number.store(number, std::memory_order_release);
    for (int other = 0; other < threads_; ++other) {
      while (lines_[other].number.load(std::memory_order_acquire) < number) {
      }
    }
  }

  // The least that any collective takes: everybody's line to everybody.
  void exchange(int self, std::uint64_t& number, const float* send, float* recv,
                std::size_t bytes) {
    ++number;
    Line* const lines = tiny_[number % 2];
    std::memcpy(lines[self].payload, send, bytes);
    lines[self].number.store(number, std::memory_order_release);
    float sums[kPayload / sizeof(float)];
    std::fill_n(sums, bytes / sizeof(float), 0.0f);
    for (int other = 0; other < threads_; ++other) {
      while (lines[other].number.load(std::memory_order_acquire) < number) {
      }
      float values[kPayload / sizeof(float)];
      std::memcpy(values, lines[other].payload, bytes);
      for (std::size_t i = 0; i < bytes / sizeof(float); ++i) sums[i] += values[i];
    }
    std::memcpy(recv, sums, bytes);
  }

  double most(int self, std::uint64_t& number, double mine) {
    values_[self] = mine;
    meet(self, number);
    const double largest = *std::max_element(values_, values_ + threads_);
    meet(self, number);
    return largest;
  }

 private:
  const int threads_;
  Line lines_[kMostThreads];
  Line tiny_[2][kMostThreads];
  double values_[kMostThreads] = {};
};

// One thread's view of the run. All threads execute the same calls.
class Runner {
 public:
  Runner(const Plan& plan, Team& team, const Memory& memory, int self)
      : plan_(plan), team_(team), memory_(memory), self_(self) {}

  void run_all() {
    pin(&plan_, self_);
    fill();
    ping_pong();
    for (int i = 0; i < plan_.point_count; ++i) {
      const Point& point = plan_.points[i];
      if (i == 0 || point.bytes != plan_.points[i - 1].bytes) copy(point.bytes);
      run_point(point);
    }
  }

 private:
  bool speaks() const { return self_ == 0; }
  void meet() { team_.meet(self_, number_); }

  // Whoever uses memory first decides where it is.
  void fill() {
    for (std::size_t rank = 0; rank < memory_.send.size(); ++rank) {
      if (static_cast<int>(rank) % team_.threads() != self_) continue;
      std::fill_n(memory_.send[rank], largest() / sizeof(float), 1.0f);
      std::fill_n(memory_.recv[rank], largest() / sizeof(float), 0.0f);
    }
    if (speaks()) std::fill_n(memory_.staging, staging_count(plan_.ranks), 0.0f);
    meet();
  }

  std::size_t largest() const {
    std::size_t most = 64;
    for (int i = 0; i < plan_.point_count; ++i) most = std::max(most, plan_.points[i].bytes);
    return most;
  }

  // The least time of one `operation`, which is called with the number of times to do it. Gives up
  // early on what is much slower than the best way known.
  template <typename Operation>
  double time_of(const Operation& operation, double known = 0) {
    int times = 1;
    time_once(operation, times);
    double each = time_once(operation, times);
    while (each * times < plan_.sample_us / 4 && times < 1000000) {
      times *= 4;
      each = time_once(operation, times);
    }
    if (each > 25 * plan_.sample_us || (known > 0 && each > 1.5 * known)) return each;
    times = std::max(1, static_cast<int>(plan_.sample_us / each));
    for (int i = 0; i < plan_.samples; ++i) each = std::min(each, time_once(operation, times));
    return each;
  }

  template <typename Operation>
  double time_once(const Operation& operation, int times) {
    meet();
    const double begin = now_us();
    operation(times);
    return team_.most(self_, number_, now_us() - begin) / times;
  }

  // Thread 0 and thread 1 wait for each other's lines in turn.
  void volley(int times) {
    static std::atomic<std::uint64_t> ball{0};
    if (self_ > 1) return;
    const auto first = ball.load(std::memory_order_relaxed) / 2 * 2;
    for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(times); ++i) {
      const std::uint64_t mine = first + 2 * i + static_cast<std::uint64_t>(self_);
      while (ball.load(std::memory_order_acquire) != mine) {
      }
      ball.store(mine + 1, std::memory_order_release);
    }
  }

  void ping_pong() {
    if (team_.threads() < 2) return;
    const double each = time_of([&](int times) { volley(times); });
    if (speaks()) std::printf("ping_pong %.2f\n", each * 1e3 / 2);
  }

  // How far the cores are from each other just now; 0 of a single one.
  double line_ns() {
    if (team_.threads() < 2) return 0;
    constexpr int kSamples = 3;
    constexpr int kVolleys = 300;
    double least = HUGE_VAL;
    for (int i = 0; i < kSamples; ++i)
      least = std::min(least, time_once([&](int times) { volley(times); }, kVolleys));
    return least * 1e3 / 2;
  }

  void copy(std::size_t bytes) {
    const auto ranks = memory_.send.size();
    const auto mine = static_cast<std::size_t>(self_) % ranks;
    double best[2] = {};
    for (const bool streaming : {false, true}) {
      if (streaming && bytes < kStreamedBytes) continue;
      const Fold fold{{memory_.recv[mine]}, {memory_.send[mine]}, bytes / sizeof(float)};
      for (const int copiers : {1, team_.threads()}) {
        const double each = time_of([&](int times) {
          for (int i = 0; i < times && self_ < copiers; ++i) limits::run(fold, streaming);
        });
        double& place = best[copiers == 1 ? 0 : 1];
        place = std::max(place, copiers * static_cast<double>(bytes) / each * 1e-3);
        if (team_.threads() == 1) best[1] = best[0];
      }
    }
    if (speaks()) std::printf("copy %zu %.3f %.3f\n", bytes, best[0], best[1]);
  }

  void run_program(const Program& program, int times) {
    const auto self = static_cast<std::size_t>(self_);
    for (int i = 0; i < times; ++i) {
      const auto& steps = (i % 2 == 0 ? program.even : program.odd)[self];
      if (program.meets_before) meet();
      for (std::size_t step = 0; step < steps.size(); ++step) {
        if (step > 0) meet();
        for (const Fold& fold : steps[step]) limits::run(fold, program.streaming);
      }
      if (program.meets_after) meet();
    }
  }

  // Types differ in nothing that is looked at here: each size is measured once.
  void run_point(const Point& point) {
    Known& known = known_[{point.operation, point.bytes}];
    // Once more if the cores have come nearer to each other, or gone farther, meanwhile.
    for (int times = 0; known.least == 0 && times < kMostTimes; ++times) {
      const double before = line_ns();
      const double least = least_time(point);
      const double after = line_ns();
      const bool are_alike = std::max(before, after) <= kAlike * std::min(before, after);
      if (are_alike || times + 1 == kMostTimes) known = {least, std::max(before, after)};
    }
    if (!speaks()) return;
    std::printf("point %s %s %zu loop %.4f", operation_name(point.operation), type_name(point.type),
                point.bytes, known.least);
    if (known.line_ns > 0) std::printf("@%.1f", known.line_ns);
    std::printf("\n");
    std::fflush(stdout);
  }

  // The time of the fastest of all ways to do it.
  double least_time(const Point& point) {
    std::vector<Program> programs;
    if (plan_.private_memory || point.bytes <= kStagedBytes) {
      programs = private_programs(point, plan_.ranks, team_.threads(), memory_);
    }
    if (!plan_.private_memory) {
      for (Program& program : mapped_programs(point, plan_.ranks, team_.threads(), memory_)) {
        programs.push_back(std::move(program));
      }
    }
    double least = 0;
    const auto consider = [&](double time) { least = least == 0 ? time : std::min(least, time); };
    for (const Program& program : programs) {
      if (program.streaming && point.bytes < kStreamedBytes) continue;
      consider(time_of([&](int times) { run_program(program, times); }, least));
    }
    if (point.bytes <= kPayload && plan_.ranks == team_.threads()) {
      const auto self = static_cast<std::size_t>(self_);
      consider(time_of([&](int times) {
        for (int i = 0; i < times; ++i) {
          team_.exchange(self_, tiny_number_, memory_.send[self], memory_.recv[self], point.bytes);
        }
      }));
    }
    return least;
  }

  const Plan& plan_;
  Team& team_;
  const Memory& memory_;
  const int self_;
  std::uint64_t number_ = 0;
  std::uint64_t tiny_number_ = 0;
  struct Known {
    double least = 0;
    double line_ns = 0;  // while that was measured
  };
  std::map<std::pair<Operation, std::size_t>, Known> known_;
};

}  // namespace

int main(int argc, char** argv) {
  const Plan plan = read_plan(argc, argv);
  int threads = std::max(1, std::min({plan.ranks, plan.cpu_count, kMostThreads}));
  std::size_t largest = 64;
  for (int i = 0; i < plan.point_count; ++i) largest = std::max(largest, plan.points[i].bytes);
  Memory memory;
  const auto floats = [](std::size_t bytes) {
    return static_cast<float*>(allocate_private(bytes));
  };
  for (int rank = 0; rank < plan.ranks; ++rank) {
    memory.send.push_back(floats(largest));
    memory.recv.push_back(floats(largest));
  }
  memory.staging = floats(staging_count(plan.ranks) * sizeof(float));
  Team team(threads);
  std::vector<std::thread> others;
  for (int self = 1; self < threads; ++self) {
    others.emplace_back([&, self] { Runner(plan, team, memory, self).run_all(); });
  }
  Runner(plan, team, memory, 0).run_all();
  for (std::thread& other : others) other.join();
  std::printf("done\n");
  return EXIT_SUCCESS;
}
