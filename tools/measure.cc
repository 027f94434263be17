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
#include "src/base/scope_exit.h"
#include "src/comm/communicator.h"
#include "src/device/device.h"
#include "src/topology/machine.h"
#include "transports/built_in.h"

namespace catenary {
namespace {

constexpr int kMostRanks = 64;
constexpr int kMostNames = 64;
constexpr int kMostRounds = 255;
constexpr double kMostIterations = 4000;

// In memory that all ranks and the caller share.
struct Board {
  std::atomic<int> arrived{0};
  std::atomic<int> turn{0};
  std::atomic<int> points_done{0};
  std::atomic<bool> failed{false};
  std::atomic<int> ids_made{0};
  UniqueId ids[kMostNames];
  double ns[kMostRanks];
  char failure[512] = "";
  double times[1];  // more follow: kMostNames for each point
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

class Member {
 public:
  Member(int rank, const Crew& crew, const std::vector<Point>& points, const Config& config,
         Board& board)
      : rank_(rank),
        nranks_(crew.nranks),
        board_(board),
        names_(names_of(points)),
        input_(Mapping::anonymous(most_bytes(points))),
        output_(Mapping::anonymous(most_bytes(points))),
        device_(Device::get(crew.wire == Wire::kThreads ? rank : 0)) {
    std::memset(input_.data(), 0, input_.bytes());
    std::memset(output_.data(), 0, output_.bytes());
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
      for (std::size_t i = 0; i < names_.size(); ++i) board_.ids[i] = create_unique_id(configs_[i]);
    }
    meet(board_, nranks_);
    for (std::size_t i = 0; i < names_.size(); ++i) {
      communicators_.push_back(
          Communicator::make(rank_, nranks_, device_, CommunicatorOptions{}, configs_[i]));
      communicators_.back()->join(board_.ids[i], built_in_transports);
    }
  }

  Communicator& communicator(const std::string& name) {
    const auto found = std::find(names_.begin(), names_.end(), name);
    return *communicators_[static_cast<std::size_t>(found - names_.begin())];
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

  double burst(Communicator& communicator, OperationRequest& request, int iterations) {
    meet(board_, nranks_);
    const std::int64_t begin = now_ns();
    for (int i = 0; i < iterations; ++i) {
      communicator.submit({&request, 1});
      request.root = (request.root + nranks_ - 1) % nranks_;
    }
    device_.default_stream().synchronize();
    const std::optional<Error> failure = communicator.failure();
    if (failure) throw Error(*failure);
    board_.ns[rank_] = static_cast<double>(now_ns() - begin) / iterations;
    meet(board_, nranks_);
    return *std::max_element(board_.ns, board_.ns + nranks_);
  }

  void run_point(const Point& point, const Effort& effort, double* times) {
    OperationRequest operation = request(point);
    double longest = 0;
    for (const std::string& name : point.variants) {
      for (int warm_up = 0; warm_up < 2; ++warm_up) {
        const double ns = burst(communicator(name), operation, nranks_);
        if (warm_up == 1) longest = std::max(longest, ns);
      }
    }
    // All ranks saw the same times, so they come to the same number.
    const int turns = has_root(point.collective) ? nranks_ : 1;
    const double wanted = std::clamp(effort.burst_ns / longest, 1.0, kMostIterations);
    const int iterations = (static_cast<int>(wanted) + turns - 1) / turns * turns;
    std::vector<std::vector<double>> samples(point.variants.size());
    for (int round = 0; round < std::min(effort.rounds, kMostRounds); ++round) {
      for (std::size_t i = 0; i < point.variants.size(); ++i) {
        // Another order each round, so that nobody always runs behind the same one.
        const std::size_t which = round % 2 == 0 ? i : point.variants.size() - 1 - i;
        samples[which].push_back(burst(communicator(point.variants[which]), operation, iterations));
      }
    }
    if (rank_ != 0) return;
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const double rank_of_it = effort.quantile * static_cast<double>(samples[i].size() - 1);
      const auto chosen = samples[i].begin() + static_cast<std::ptrdiff_t>(rank_of_it + 0.5);
      std::nth_element(samples[i].begin(), chosen, samples[i].end());
      times[i] = *chosen;
    }
  }

  const int rank_;
  const int nranks_;
  Board& board_;
  const std::vector<std::string> names_;
  Mapping input_;
  Mapping output_;
  Device& device_;
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

Times measure(const Crew& crew, const std::vector<Point>& points, const Effort& effort,
              const Config& config, const std::function<void(std::size_t)>& tell) {
  if (crew.nranks > kMostRanks) throw_error(ErrorCode::kInvalidArgument, "too many ranks");
  const std::size_t bytes = sizeof(Board) + points.size() * kMostNames * sizeof(double);
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw_system_error("cannot map memory", errno);
  const ScopeExit unmap([&] { ::munmap(memory, bytes); });
  Board& board = *new (memory) Board;
  const Config own = config_for(crew, config);
  std::vector<pid_t> children =
      start(crew, [&](int rank) { return serve(rank, crew, points, effort, own, board); });
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
    const double* first = board.times + i * kMostNames;
    times.emplace_back(first, first + points[i].variants.size());
  }
  return times;
}

}  // namespace catenary
