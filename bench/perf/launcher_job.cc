// Processes that torchrun, srun or a script started, and that know of each other by environment
// variables only: they meet at NCCL_COMM_ID, as programs do, and exchange their words over a
// communicator of their own.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>

#include "bench/perf/device_stream.h"
#include "bench/perf/failure.h"
#include "bench/perf/launcher.h"

namespace catenary::perf {
namespace {

using Clock = std::chrono::steady_clock;

std::string environment(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? "" : text;
}

int number_of(const char* name) {
  const std::string text = environment(name);
  const bool is_number = !text.empty() && text.find_first_not_of("0123456789") == text.npos;
  const int number = is_number && text.size() < 8 ? std::stoi(text) : -1;
  if (number < 0) throw UsageError(std::string(name) + "=" + text + " is no number of a process");
  return number;
}

class JobProcess final : public Launcher {
 public:
  JobProcess(int process, int processes) : place_{process, processes, 0, 1} {
    ncclUniqueId id;
    check_nccl(ncclGetUniqueId(&id));  // that of NCCL_COMM_ID
    check_nccl(ncclCommInitRank(&comm_, processes, id, process));
    find_neighbours();
  }
  ~JobProcess() override {
    if (failed_) {
      ncclCommAbort(comm_);
    } else {
      ncclCommDestroy(comm_);
    }
  }

  Place place() const override { return place_; }

  void barrier() override {
    std::byte here{};
    std::vector<std::byte> all(static_cast<std::size_t>(place_.processes));
    all_gather({&here, 1}, all);
  }

  void broadcast(std::span<std::byte> bytes, int root) override {
    check_nccl(
        ncclBroadcast(bytes.data(), bytes.data(), bytes.size(), ncclChar, root, comm_,
                      stream_.handle()));
    wait();
  }

  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    check_nccl(ncclAllGather(mine.data(), all.data(), mine.size(), ncclChar, comm_,
                             stream_.handle()));
    wait();
  }

  void limit_waiting(std::chrono::seconds most) override { most_ = most; }
  // The others hear of it when this process has ended without a word.
  void abort() override { failed_ = true; }

 private:
  // What one says of its machine is its name. Namesakes of other machines get devices of higher
  // numbers than they need, and nothing else.
  void find_neighbours() {
    constexpr std::size_t kLongest = 256;
    std::string name = host_name();
    name.resize(kLongest);
    std::vector<std::byte> names(kLongest * static_cast<std::size_t>(place_.processes));
    all_gather(std::as_bytes(std::span(name)), names);
    place_.local_processes = 0;
    for (int process = 0; process < place_.processes; ++process) {
      const std::byte* theirs = names.data() + static_cast<std::size_t>(process) * kLongest;
      if (std::memcmp(theirs, name.data(), kLongest) != 0) continue;
      if (process == place_.process) place_.local_process = place_.local_processes;
      ++place_.local_processes;
    }
  }

  // Asks now and then, since others may be measuring on this core.
  void wait() {
    constexpr std::chrono::microseconds kPause{50};
    const Clock::time_point begin = Clock::now();
    for (;;) {
      const bool is_over = stream_.idle();
      ncclResult_t state = ncclSuccess;
      ncclCommGetAsyncError(comm_, &state);
      if (state == ncclSuccess && is_over) return;
      const bool is_late = most_.count() > 0 && Clock::now() - begin > most_;
      if (state == ncclSuccess && !is_late) {
        std::this_thread::sleep_for(kPause);
        continue;
      }
      const std::string why = ncclGetLastError(comm_);
      ncclCommAbort(std::exchange(comm_, nullptr));  // nothing may come any more: buffers go
      if (state != ncclSuccess)
        throw TestFailure(failure_line("NCCL", why, std::source_location::current()));
      throw TestFailure(failure_line("launcher", "other processes of the job are late",
                                     std::source_location::current()));
    }
  }

  Place place_;
  ncclComm_t comm_ = nullptr;
  Stream stream_{0, false};
  std::chrono::seconds most_{0};
  std::atomic<bool> failed_{false};
};

// All groups would meet at one place.
void refuse_groups() {
  for (const char* variable : {"NCCL_TESTS_SPLIT", "NCCL_TESTS_SPLIT_MASK"}) {
    if (environment(variable).empty()) continue;
    throw UsageError(std::string(variable) + " needs mpirun or --procs");
  }
}

// torchrun's own store listens at MASTER_PORT.
void meet_beside_master() {
  if (!environment("NCCL_COMM_ID").empty()) return;
  const std::string address = environment("MASTER_ADDR");
  if (address.empty() || environment("MASTER_PORT").empty()) {
    throw UsageError("RANK and WORLD_SIZE are set, but neither NCCL_COMM_ID=host:port, where all "
                     "can meet, nor MASTER_ADDR and MASTER_PORT");
  }
  const std::string port = std::to_string(number_of("MASTER_PORT") + 1);
  const bool is_v6 = address.find(':') != address.npos;
  const std::string place = (is_v6 ? "[" + address + "]" : address) + ":" + port;
  setenv("NCCL_COMM_ID", place.c_str(), 1);
}

}  // namespace

std::unique_ptr<Launcher> join_job() {
  if (!environment("RANK").empty() && !environment("WORLD_SIZE").empty()) {
    const int processes = number_of("WORLD_SIZE");
    if (processes < 2) return nullptr;
    refuse_groups();
    meet_beside_master();
    return std::make_unique<JobProcess>(number_of("RANK"), processes);
  }
  // A shell in an allocation has these, too: only who says where to meet means a job.
  const bool is_task = !environment("SLURM_PROCID").empty() && !environment("SLURM_NTASKS").empty();
  if (!is_task) return nullptr;
  const int processes = number_of("SLURM_NTASKS");
  if (processes < 2) return nullptr;
  if (environment("NCCL_COMM_ID").empty()) {
    const bool are_several =
        !environment("SLURM_STEP_NUM_TASKS").empty() && number_of("SLURM_STEP_NUM_TASKS") > 1;
    if (are_several && number_of("SLURM_PROCID") == 0) {
      std::fprintf(stderr,
                   "Of %d tasks of srun each is measured alone; with NCCL_COMM_ID=host:port, "
                   "where task 0 runs, all are measured together.\n",
                   processes);
    }
    return nullptr;
  }
  refuse_groups();
  return std::make_unique<JobProcess>(number_of("SLURM_PROCID"), processes);
}

}  // namespace catenary::perf
