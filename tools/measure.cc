#include "tools/measure.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstring>
#include <deque>
#include <memory>
#include <new>
#include <thread>

#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/mapping.h"
#include "src/base/rounding.h"
#include "src/base/scope_exit.h"
#include "src/comm/communicator.h"
#include "src/device/device.h"
#include "src/device/memory.h"
#include "src/topology/machine.h"
#include "tools/rounds.h"
#include "transports/built_in.h"

namespace catenary {
namespace {

constexpr int kMostNames = 64;
// Rounds after which variants are taken out of the running.
constexpr int kRoundsBeforeOut = 4;
constexpr double kMostIterations = 4000;
constexpr double kWarmUpBursts = 30;
// Bursts that take so much of the time of the one before, or more, take no less.
constexpr double kSteady = 0.95;

// In memory that all ranks and the caller share.
struct Board {
  std::atomic<int> arrived{0};
  std::atomic<int> turn{0};
  std::atomic<int> points_done{0};
  std::atomic<bool> failed{false};
  std::atomic<int> ids_made{0};
  UniqueId ids[kMostNames * kReplicas];
  double ns[kMostRanks];
  char failure[512] = "";
  Timing times[1];  // more follow: kMostNames for each point
};

// Waits for all ranks; gives up when one of them has failed.
void meet(Board& board, int nranks) {
  const int turn = board.turn.load(std::memory_order_acquire);
  if (board.arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == nranks) {
    board.arrived.store(0, std::memory_order_relaxed);
    board.turn.store(turn + 1, std::memory_order_release);
    return;
  }
  for (int tries = 0; board.turn.load(std::memory_order_acquire) == turn; ++tries) {
    if (tries > 200) ::sched_yield();
    if (board.failed.load(std::memory_order_relaxed)) {
      throw_error(ErrorCode::kRemote, "another rank failed");
    }
  }
}

std::vector<std::string> names_of(const std::vector<Point>& points) {
  std::vector<std::string> names;
  for (const Point& point : points) {
    for (const std::string& name : point.variants) {
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }
  if (names.size() > kMostNames) throw_error(ErrorCode::kInternal, "too many algorithms");
  return names;
}

std::size_t most_bytes(const std::vector<Point>& points) {
  std::size_t most = 64;
  for (const Point& point : points) most = std::max(most, point.bytes);
  return most;
}

// A buffer of zeros, of the library's memory or of the process's own.
class Room {
 public:
  Room(bool mapped, std::size_t bytes) : data_(nullptr) {
    if (mapped) {
      data_ = Memory::process().allocate(bytes, MemoryKind::kDevice, 0);
    } else {
      private_ = Mapping::anonymous(bytes);
      data_ = private_.data();
    }
    std::memset(data_, 0, bytes);
  }
  Room(const Room&) = delete;
  ~Room() {
    if (!private_) Memory::process().free(data_, MemoryKind::kDevice);
  }
  void* data() const { return data_; }

 private:
  Mapping private_;
  void* data_;
};

class Member {
 public:
  Member(int rank, const Crew& crew, const std::vector<Point>& points, const Config& config,
         Board& board)
      : rank_(rank),
        nranks_(crew.nranks),
        board_(board),
        names_(names_of(points)),
        device_(Device::get(crew.wire == Wire::kThreads ? rank : 0)),
        input_(crew.mapped, most_bytes(points)),
        output_(crew.mapped, most_bytes(points)) {
    for (const std::string& name : names_)
      configs_.push_back(config), configs_.back().algorithm = name;
    join();
  }

  void run(const std::vector<Point>& points, const Effort& effort) {
    for (std::size_t i = 0; i < points.size(); ++i) {
      run_point(points[i], effort, board_.times + i * kMostNames);
      if (rank_ == 0) board_.points_done.fetch_add(1, std::memory_order_release);
    }
    meet(board_, nranks_);
  }

 private:
  void join() {
    if (rank_ == 0) {
      for (std::size_t i = 0; i < names_.size() * kReplicas; ++i) {
        board_.ids[i] = create_unique_id(configs_[i / kReplicas]);
      }
    }
    meet(board_, nranks_);
    for (std::size_t i = 0; i < names_.size() * kReplicas; ++i) {
      communicators_.push_back(Communicator::make(rank_, nranks_, device_, CommunicatorOptions{},
                                                  configs_[i / kReplicas]));
      communicators_.back()->join(board_.ids[i], built_in_transports);
    }
  }

  Communicator& communicator(const std::string& name, std::size_t turn) {
    const auto found = std::find(names_.begin(), names_.end(), name);
    const auto index = static_cast<std::size_t>(found - names_.begin());
    return *communicators_[index * kReplicas + turn % kReplicas];
  }

  OperationRequest request(const Point& point) {
    OperationRequest request;
    request.kind = point.collective;
    request.input = input_.data();
    request.output = output_.data();
    request.type = DataType::kFloat32;
    const auto parts =
        static_cast<std::size_t>(holds_part_per_rank(point.collective) ? nranks_ : 1);
    request.count = std::max<std::size_t>(point.bytes / parts / sizeof(float), 1);
    if (reduces(point.collective)) {
      request.reduction = communicators_.front()->reductions().resolve(0, request.type);
    }
    request.stream = &device_.default_stream();
    return request;
  }

  void submit(Communicator& communicator, OperationRequest& request) {
    communicator.submit({.operations = {&request, 1}, .messages = {}});
    request.root = (request.root + nranks_ - 1) % nranks_;
  }

  double burst(Communicator& communicator, OperationRequest& request, int lead_in, int iterations) {
    for (int i = 0; i < lead_in; ++i) submit(communicator, request);
    device_.default_stream().synchronize();
    meet(board_, nranks_);
    const std::int64_t begin = now_ns();
    for (int i = 0; i < iterations; ++i) submit(communicator, request);
    device_.default_stream().synchronize();
    const std::optional<Error> failure = communicator.failure();
    if (failure) throw Error(*failure);
    board_.ns[rank_] = static_cast<double>(now_ns() - begin) / iterations;
    meet(board_, nranks_);
    return *std::max_element(board_.ns, board_.ns + nranks_);
  }

  // One operation, and then bursts of it until all slots of the links that it uses have been used
  // and a burst takes no less time than the one before: memory that is used for the first time
  // takes several times as long as the operations, links have more of it the more passes through
  // them, and that is not what is asked. As long as that takes no more than some bursts: of longer
  // operations it is a small part.
  void warm_up(const Point& point, Communicator& communicator, OperationRequest& operation,
               const Effort& effort) {
    double ns = burst(communicator, operation, 0, 1);
    int rounds = rounds_of_slots(point);
    double left_ns = kWarmUpBursts * effort.burst_ns;
    for (bool falls = true; rounds > 0 || falls;) {
      const int iterations = std::max(static_cast<int>(filling(effort, ns)), turns(point));
      left_ns -= iterations * ns;
      if (left_ns < 0) return;
      const double next_ns = burst(communicator, operation, 0, iterations);
      falls = next_ns < kSteady * ns;
      ns = next_ns;
      rounds -= iterations / turns(point);
    }
  }

  // How many operations of `ns` each fill a burst.
  static double filling(const Effort& effort, double ns) {
    return std::clamp(effort.burst_ns / ns, 1.0, kMostIterations);
  }

  // How many operations of each root go once through all slots of a link.
  int rounds_of_slots(const Point& point) const {
    const auto slots = static_cast<std::size_t>(configs_.front().slots);
    const auto slot_bytes = static_cast<std::size_t>(configs_.front().slot_bytes);
    const std::size_t chunk =
        std::max<std::size_t>(point.bytes / static_cast<std::size_t>(nranks_), 1);
    return static_cast<int>(std::clamp<std::size_t>(slots * slot_bytes / chunk, 1, slots));
  }

  // Each root has its turn.
  int turns(const Point& point) const { return has_root(point.collective) ? nranks_ : 1; }

  // So many operations as fill a burst: found with more and more of them, since a few take mostly
  // the time until all ranks run. Each root has its turn, but for operations so long that two will
  // do. All ranks saw the same times, so they come to the same numbers, here and in what follows.
  Runner make_runner(const Point& point, const std::string& name, OperationRequest& operation,
                     const Effort& effort) {
    for (std::size_t replica = 0; replica < kReplicas; ++replica) {
      warm_up(point, communicator(name, replica), operation, effort);
    }
    const int turns = this->turns(point);
    double wanted = std::min(turns, 2);
    for (std::size_t turn = 0;; ++turn) {
      const auto tried = static_cast<int>(wanted);
      const double ns = burst(communicator(name, turn), operation, 0, tried);
      const double filling = this->filling(effort, ns);
      if (filling < 2 * wanted) {
        wanted = std::max(wanted, filling);
        break;
      }
      wanted = std::min(filling, 8 * wanted);
    }
    const auto iterations = static_cast<int>(wanted);
    Runner runner;
    runner.is_algorithm = !name.empty();
    runner.iterations = iterations >= turns ? round_up(iterations, turns) : iterations;
    runner.lead_in = iterations > 4 ? 2 : 0;
    return runner;
  }

  // Each begins a round in turn, so that nobody always runs first or behind the same one. Returns
  // the time.
  double run_round(const Point& point, int round, OperationRequest& operation,
                   std::vector<Runner>& runners) {
    double spent = 0;
    const std::size_t count = runners.size();
    const auto turn = static_cast<std::size_t>(round);
    for (std::size_t i = 0; i < count; ++i) {
      // Now forward, now backward.
      const std::size_t which = (turn / 2 + (turn % 2 == 0 ? i : count - i)) % count;
      Runner& runner = runners[which];
      if (runner.is_out) continue;
      const double ns = burst(communicator(point.variants[which], turn), operation, runner.lead_in,
                              runner.iterations);
      runner.ns.push_back(ns);
      spent += ns * (runner.lead_in + runner.iterations);
    }
    return spent;
  }

  void run_point(const Point& point, const Effort& effort, Timing* times) {
    OperationRequest operation = request(point);
    std::vector<Runner> runners;
    for (const std::string& name : point.variants) {
      runners.push_back(make_runner(point, name, operation, effort));
    }
    std::size_t best = 0;
    if (point.judged) {
      run_judged(point, effort, operation, runners);
      start_again(runners, *point.judged);
      run_judged(point, effort, operation, runners);
      best = best_of(runners);
    } else {
      for (int round = 1; round <= effort.least_rounds; ++round)
        run_round(point, round, operation, runners);
    }
    if (rank_ != 0) return;
    for (std::size_t i = 0; i < runners.size(); ++i) {
      const std::vector<double>& ns = runners[i].ns;
      times[i].ns = runners[i].typical(effort.quantile);
      times[i].spread = (quantile(ns, 0.75) - quantile(ns, 0.25)) / runners[i].median();
      times[i].is_best = point.judged && i == best;
    }
  }

  void run_judged(const Point& point, const Effort& effort, OperationRequest& operation,
                  std::vector<Runner>& runners) {
    double spent = 0;
    for (int round = 1; round <= effort.most_rounds; ++round) {
      spent += run_round(point, round, operation, runners);
      if (round < kRoundsBeforeOut) continue;
      const bool is_clear = sift(runners, *point.judged, effort.close);
      if ((is_clear && round >= effort.least_rounds) || spent > effort.point_ns) break;
    }
  }

  const int rank_;
  const int nranks_;
  Board& board_;
  const std::vector<std::string> names_;
  Device& device_;
  Room input_;
  Room output_;
  std::deque<Config> configs_;  // communicators point to theirs
  std::vector<std::shared_ptr<Communicator>> communicators_;
};

// A rank, until it is done: its exit status.
int serve(int rank, const Crew& crew, const std::vector<Point>& points, const Effort& effort,
          const Config& config, Board& board) {
  try {
    Member member(rank, crew, points, config, board);
    member.run(points, effort);
    return 0;
  } catch (const std::exception& error) {
    if (!board.failed.exchange(true)) {
      std::snprintf(board.failure, sizeof board.failure, "rank %d: %s", rank, error.what());
    }
    return 1;
  }
}

// The processes of a crew: one of many threads, or many of one.
std::vector<pid_t> start(const Crew& crew, const std::function<int(int)>& body) {
  std::vector<pid_t> children;
  const int processes = crew.wire == Wire::kThreads ? 1 : crew.nranks;
  for (int process = 0; process < processes; ++process) {
    const pid_t child = ::fork();
    if (child < 0) throw_system_error("cannot fork a rank", errno);
    if (child > 0) {
      children.push_back(child);
      continue;
    }
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    int status = 0;
    if (crew.wire == Wire::kThreads) {
      std::vector<std::thread> threads;
      for (int rank = 1; rank < crew.nranks; ++rank)
        threads.emplace_back([&, rank] { body(rank); });
      status = body(0);
      for (std::thread& thread : threads) thread.join();
    } else {
      status = body(process);
    }
    ::_exit(status);
  }
  return children;
}

Config config_for(const Crew& crew, const Config& config) {
  Config result = config;
  result.comm_id.clear();
  result.nccl_algo.clear();
  if (crew.wire == Wire::kNetwork) result.transports = "tcp";
  return result;
}

}  // namespace

MachineFacts facts_of(const Crew& crew) {
  MachineFacts facts;
  facts.local_ranks = crew.wire == Wire::kNetwork ? 1 : crew.nranks;
  facts.cores = usable_cores();
  facts.box = crew.wire == Wire::kNetwork ? 1 : crew.nranks;
  facts.near = crew.wire;
  facts.far = crew.wire;
  return facts;
}

double crowding(const Crew& crew) {
  return std::max(1.0, static_cast<double>(crew.nranks) / usable_cores());
}

Times measure(const Crew& crew, const std::vector<Point>& points, const Effort& effort,
              const Config& config, const std::function<void(std::size_t)>& tell) {
  if (crew.nranks > kMostRanks) throw_error(ErrorCode::kInvalidArgument, "too many ranks");
  const std::size_t bytes = sizeof(Board) + points.size() * kMostNames * sizeof(Timing);
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw_system_error("cannot map memory", errno);
  const ScopeExit unmap([&] { ::munmap(memory, bytes); });
  Board& board = *new (memory) Board;
  const Config own = config_for(crew, config);
  Effort crowded = effort;
  crowded.burst_ns *= crowding(crew);
  crowded.point_ns *= crowding(crew);
  std::vector<pid_t> children =
      start(crew, [&](int rank) { return serve(rank, crew, points, crowded, own, board); });
  bool well = true;
  int told = 0;
  while (!children.empty()) {
    ::usleep(20000);
    for (const int done = board.points_done.load(std::memory_order_acquire); told < done; ++told) {
      tell(static_cast<std::size_t>(told));
    }
    std::erase_if(children, [&](pid_t child) {
      int status = 0;
      if (::waitpid(child, &status, WNOHANG) == 0) return false;
      if (status == 0) return true;
      well = false;
      board.failed = true;
      return true;
    });
  }
  if (!well) {
    throw_error(ErrorCode::kRemote, "cannot measure: %s",
                board.failure[0] != '\0' ? board.failure : "a rank died");
  }
  Times times;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const Timing* first = board.times + i * kMostNames;
    times.emplace_back(first, first + points[i].variants.size());
  }
  return times;
}

}  // namespace catenary
