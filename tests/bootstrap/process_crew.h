// Ranks as processes: forks them, watches them through shared memory, kills and reaps them.
//
// The test's own process makes no communicator, so that it has a single thread when it forks.
#pragma once

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <functional>
#include <map>
#include <string>

#include "tests/bootstrap/bootstrap_support.h"

namespace catenary {

enum CrewStage : int { kStarting, kReady, kJoined, kFinished };

class ProcessCrew {
 public:
  static constexpr int kMost = 64;
  // What a rank says of itself. Written by its process, read by the test's.
  struct Rank {
    std::atomic<int> stage;
    std::atomic<int> helper_pid;
    std::int64_t joined_ns;
    std::int64_t fault_ns;
    int code;  // 0: no fault
    char text[1200];

    void record(const Error& error) {
      fault_ns = now_ns();
      code = static_cast<int>(error.code());
      std::snprintf(text, sizeof text, "%s", error.what());
    }
  };

  ProcessCrew()
      : shared_(static_cast<Shared*>(::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE,
                                            MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {}
  ~ProcessCrew() {
    for (const auto& [rank, pid] : pids_) ::kill(pid, SIGKILL);
    for (const auto& [rank, pid] : pids_) ::waitpid(pid, nullptr, 0);
    ::munmap(shared_, sizeof(Shared));
  }
  ProcessCrew(const ProcessCrew&) = delete;
  ProcessCrew& operator=(const ProcessCrew&) = delete;

  // Starts a process for `rank` that runs body(rank) and ends; an Error becomes the rank's record.
  void start(int rank, const std::function<void(int)>& body) {
    const pid_t pid = ::fork();
    ASSERT_GE(pid, 0);
    if (pid > 0) {
      pids_[rank] = pid;
      return;
    }
    ::alarm(30);
    try {
      body(rank);
    } catch (const Error& error) {
      at(rank).record(error);
    }
    at(rank).stage = kFinished;
    ::_exit(0);
  }

  // In the process that is to be the root: makes the id for all.
  void publish_id(const Config& config) {
    shared_->id = create_unique_id(config);
    shared_->id_ready = 1;
  }
  // In the others.
  UniqueId wait_id() const {
    while (shared_->id_ready == 0) ::usleep(200);
    return shared_->id;
  }
  void open_gate() { shared_->gate = 1; }
  void wait_gate() const {
    while (shared_->gate == 0) ::usleep(200);
  }

  Rank& at(int rank) { return shared_->ranks[rank]; }
  pid_t pid(int rank) const { return pids_.at(rank); }

  [[nodiscard]] bool wait_stage(int rank, CrewStage stage, std::int64_t ms = 5000) {
    const Deadline deadline = Deadline::after_ms(ms);
    while (at(rank).stage < stage && !deadline.passed()) ::usleep(200);
    return at(rank).stage >= stage;
  }
  // When it happened.
  std::int64_t kill_now(int rank) {
    const std::int64_t when = now_ns();
    ::kill(pids_.at(rank), SIGKILL);
    return when;
  }
  void reap(int rank) {
    ::waitpid(pids_.at(rank), nullptr, 0);
    pids_.erase(rank);
  }

 private:
  struct Shared {
    std::atomic<int> id_ready;
    std::atomic<int> gate;
    UniqueId id;
    Rank ranks[kMost];
  };
  Shared* shared_;
  std::map<int, pid_t> pids_;
};

}  // namespace catenary
