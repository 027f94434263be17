#include "bench/perf/run.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "bench/perf/failure.h"
#include "bench/perf/memory.h"

namespace catenary::perf {
namespace {

// Of the memory that is free, what buffers may take.
constexpr double kMemoryShare = 0.8;
// How much longer than -T a process may take between two meetings: it fills and checks buffers.
constexpr std::chrono::seconds kPreparation{20};
// Exit status where --spoil_results went unnoticed.
constexpr int kDamageUnnoticed = 2;
// NCCL_TESTS_MIN_BW is met by this much of it.
constexpr double kBandwidthSlack = 0.9;

std::optional<double> required_bandwidth() {
  const char* text = std::getenv("NCCL_TESTS_MIN_BW");
  if (text == nullptr) return std::nullopt;
  char* end = nullptr;
  const double value = std::strtod(text, &end);
  if (*text == '\0' || *end != '\0') {
    throw UsageError(std::string("NCCL_TESTS_MIN_BW=") + text + ": expected a number of GB/s");
  }
  return value;
}

int library_version() {
  int version = 0;
  check_nccl(ncclGetVersion(&version));
  return version;
}

std::string short_name(const char* path) {
  const std::string whole = path;
  const std::size_t slash = whole.rfind('/');
  return slash == std::string::npos ? whole : whole.substr(slash + 1);
}

}  // namespace

Run::Run(const CollectiveTest& test, const Options& options, Launcher& launcher, int argc,
         char** argv)
    : test_(test),
      options_(options),
      launcher_(launcher),
      argc_(argc),
      argv_(argv),
      program_(short_name(argv[0])),
      world_(launcher, options),
      team_(launcher, options.threads),
      table_(options_) {
  required_bandwidth();  // a bad value is told before the work, not after
  if (const char* reason = test.refuses(world_.nranks())) {
    throw UsageError(std::to_string(world_.nranks()) + " ranks: " + reason);
  }
}

int Run::execute() {
  try {
    limit_sizes_to_memory();
    open_reports();
    memory_.before = static_cast<double>(resident_memory());
    create_workers();
    const ncclUniqueId id = world_.exchange_id();
    if (options_.timeout_s > 0) {
      launcher_.limit_waiting(std::chrono::seconds(options_.timeout_s) + kPreparation);
    }
    if (!options_.parallel_init) join_together(id);

    std::vector<std::jthread> threads;
    for (int thread = 1; thread < options_.threads; ++thread) {
      threads.emplace_back([this, thread, &id] { run_thread(thread, id); });
    }
    run_thread(0, id);
    threads.clear();  // joins
    return conclude();
  } catch (const std::exception& error) {
    fail(error.what());
  }
}

void Run::limit_sizes_to_memory() {
  const auto rank_count = static_cast<double>(world_.place().local_processes) *
                          static_cast<double>(options_.local_ranks());
  const double mine = static_cast<double>(available_memory()) * kMemoryShare / (2 * rank_count);
  const std::vector<double> all = all_gather<double>(launcher_, {&mine, 1});
  const double most = *std::min_element(all.begin(), all.end());
  if (most <= 0 || static_cast<double>(options_.max_bytes) <= most) return;
  options_.max_bytes = static_cast<std::size_t>(most) / 4096 * 4096;
  if (options_.min_bytes > options_.max_bytes) {
    throw TestFailure(failure_line("memory",
                                   "even the smallest size needs more memory than is available",
                                   std::source_location::current()));
  }
  if (shows()) {
    std::printf("#\n# Reducing maxBytes to %zu due to memory limitation\n", options_.max_bytes);
  }
}

void Run::open_reports() {
  const std::vector<DeviceLine> devices = world_.device_lines();
  if (!shows()) return;
  const int version = library_version();
  table_.print_head(program_, version, devices);
  if (!options_.output_file.empty()) {
    json_.emplace(options_, argc_, argv_, version, devices);
    std::printf("# Results as JSON go to %s\n", json_->path().c_str());
  }
  table_.print_titles();
}

void Run::create_workers() {
  // Elements of eight bytes are the largest that -u counts.
  const std::size_t bytes = options_.max_bytes + 8 * options_.unalign;
  for (int thread = 0; thread < options_.threads; ++thread) {
    std::vector<Rank> ranks;
    for (int i = 0; i < options_.gpus; ++i) {
      ranks.emplace_back(world_.rank_place(thread * options_.gpus + i), options_, bytes);
    }
    workers_.push_back(std::make_unique<Worker>(test_, options_, team_, thread, std::move(ranks)));
  }
  memory_.buffers = 2.0 * static_cast<double>(bytes) * options_.local_ranks();
}

void Run::join_together(const ncclUniqueId& id) {
  check_nccl(ncclGroupStart());
  for (const auto& worker : workers_) {
    for (Rank& rank : worker->ranks()) {
      use_device(rank.place().device);
      rank.join(id);
    }
  }
  check_nccl(ncclGroupEnd());
}

void Run::run_thread(int thread, const ncclUniqueId& id) {
  try {
    Worker& worker = *workers_[static_cast<std::size_t>(thread)];
    if (options_.parallel_init) worker.join_alone(id);
    worker.register_buffers();
    team_.barrier(thread);
    if (thread == 0) memory_.initialized = static_cast<double>(resident_memory());
    for (int cycle = 0; options_.cycles == 0 || cycle < options_.cycles; ++cycle) sweep(thread);
    // Buffers and communicators go when no peer uses them any more.
    team_.barrier(thread);
  } catch (const std::exception& error) {
    fail(error.what());
  }
}

void Run::sweep(int thread) {
  const ReductionName none{"none", Reduction::kSum};
  const std::vector<ReductionName> reductions =
      test_.reduces() ? options_.reductions : std::vector{none};
  int first_root = -1;
  int last_root = -1;
  if (test_.has_root()) {
    first_root = options_.root.value_or(0);
    last_root = options_.root.value_or(world_.nranks() - 1);
  }
  for (const DataType& type : options_.types) {
    for (const ReductionName& reduction : reductions) {
      for (int root = first_root; root <= last_root; ++root) {
        run_series(thread, type, reduction, root);
      }
    }
  }
}

void Run::run_series(int thread, const DataType& type, const ReductionName& reduction, int root) {
  Worker& worker = *workers_[static_cast<std::size_t>(thread)];
  worker.begin_series(type, reduction.reduction);
  Request request{type, reduction, root, {}, false};
  for (const std::size_t bytes : {options_.max_bytes, options_.min_bytes}) {
    request.shape = test_.shape(bytes / type.bytes, type.bytes, world_.nranks());
    worker.warm_up(request);
  }
  for (std::size_t bytes = options_.min_bytes; bytes <= options_.max_bytes;) {
    measure_size(thread, request, bytes / type.bytes);
    if (bytes == options_.max_bytes) break;
    bytes = options_.step_factor > 1 ? bytes * options_.step_factor : bytes + options_.step_bytes;
  }
  worker.end_series();
}

void Run::measure_size(int thread, Request request, std::size_t count) {
  Worker& worker = *workers_[static_cast<std::size_t>(thread)];
  request.shape = test_.shape(count, request.type.bytes, world_.nranks());
  Row row;
  row.bytes = request.shape.moved_count() * request.type.bytes;
  row.count = request.shape.param_count;
  row.type = request.type.name;
  row.reduction = request.reduction.name;
  row.root = request.root;
  row.out_of_place = worker.measure(request);
  request.in_place = true;
  row.in_place = worker.measure(request);
  if (thread == 0) record(row);
}

void Run::record(const Row& row) {
  for (const Side* side : {&row.out_of_place, &row.in_place}) {
    wrong_ += side->wrong.value_or(0);
    bus_gbs_sum_ += side->bus_gbs;
    ++measurements_;
    if (options_.spoil && row.count > 0 && side->wrong == 0u) ++unnoticed_damage_;
  }
  if (!shows()) return;
  const std::lock_guard lock(reporting_);
  table_.print_row(row);
  if (json_) json_->add(row, test_.name());
}

Summary Run::summary() const {
  Summary summary;
  summary.wrong = wrong_;
  summary.mean_bus_gbs = measurements_ > 0 ? bus_gbs_sum_ / measurements_ : 0;
  if (const auto required = required_bandwidth()) {
    summary.fast_enough = summary.mean_bus_gbs >= kBandwidthSlack * *required;
  }
  return summary;
}

void Run::show_memory() {
  memory_.end = static_cast<double>(resident_memory());
  const std::vector<Memory> all = all_gather<Memory>(launcher_, {&memory_, 1});
  if (!shows()) return;
  constexpr double kMebi = 1 << 20;
  for (std::size_t process = 0; process < all.size(); ++process) {
    const Memory& memory = all[process];
    std::printf(
        "# Memory of process %zu (MiB): buffers %.1f; resident before init %.1f, after init "
        "%.1f, at end %.1f\n",
        process, memory.buffers / kMebi, memory.before / kMebi, memory.initialized / kMebi,
        memory.end / kMebi);
  }
}

int Run::conclude() {
  if (options_.memory_report) show_memory();
  workers_.clear();
  const Summary summary = this->summary();
  if (shows()) {
    table_.print_tail(program_, summary);
    if (json_) json_->finish(summary);
  }
  // The verdict is process 0's to give, when all have come to their end: whoever watches over the
  // processes may end all of them as soon as one has failed.
  launcher_.barrier();
  if (!shows()) return EXIT_SUCCESS;
  if (options_.spoil && unnoticed_damage_ > 0) {
    std::fprintf(stderr, "%d of %d checks did not notice damaged data\n", unnoticed_damage_,
                 measurements_);
    return kDamageUnnoticed;
  }
  return summary.okay() && !options_.spoil ? EXIT_SUCCESS : EXIT_FAILURE;
}

void Run::fail(const std::string& message) {
  // The first failure is told; what follows from it on other threads waits here for the end.
  reporting_.lock();
  std::fprintf(stderr, "%s\n", message.c_str());
  if (json_) {
    try {
      json_->finish_with_error(message);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\n", error.what());
    }
  }
  std::fflush(nullptr);
  launcher_.abort();
  _exit(EXIT_FAILURE);  // other threads may wait for ever: there is nobody to join
}

}  // namespace catenary::perf
