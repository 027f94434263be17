#include "tests/support/processes.h"

#include <dirent.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <new>
#include <set>
#include <thread>

#include "tests/support/rank_group.h"

namespace catenary::testing {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::seconds kPatience = 30s;

std::set<std::string> entries_of(const char* folder) {
  std::set<std::string> names;
  DIR* const directory = ::opendir(folder);
  require(directory != nullptr, std::string("cannot read ") + folder);
  while (const dirent* entry = ::readdir(directory)) names.insert(entry->d_name);
  ::closedir(directory);
  return names;
}

void wait_until(const std::atomic<bool>& flag, const char* what) {
  const std::int64_t start = monotonic_ns();
  while (!flag.load(std::memory_order_acquire)) {
    require(monotonic_ns() - start < std::chrono::nanoseconds(kPatience).count(), what);
    std::this_thread::sleep_for(1ms);
  }
}

}  // namespace

std::int64_t monotonic_ns() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double ms_since(std::int64_t then_ns) {
  return static_cast<double>(monotonic_ns() - then_ns) / 1e6;
}

void write_text(Post& post, const std::string& text) {
  std::snprintf(post.text, sizeof post.text, "%s", text.c_str());
}

std::vector<std::string> open_files() {
  std::vector<std::string> files;
  for (const std::string& name : entries_of("/proc/self/fd")) {
    char target[256] = "";
    if (::readlink(("/proc/self/fd/" + name).c_str(), target, sizeof target - 1) < 0) continue;
    int listens = 0;
    socklen_t bytes = sizeof listens;
    ::getsockopt(std::atoi(name.c_str()), SOL_SOCKET, SO_ACCEPTCONN, &listens, &bytes);
    if (listens == 0) files.push_back(name + " " + target);
  }
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("memfd:") != std::string::npos) files.push_back(line);
  }
  return files;
}

std::string mapping_with(const std::string& text) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find(text) != std::string::npos) return line;
  }
  return "";
}

ncclUniqueId Board::id(bool make, int which) {
  if (make) {
    require_success(ncclGetUniqueId(&ids[which]), "ncclGetUniqueId");
    has_id[which].store(true, std::memory_order_release);
  } else {
    wait_until(has_id[which], "nobody has made an id");
  }
  return ids[which];
}

void Board::wait_for_go() const { wait_until(go, "the test does not go on"); }

Processes::Processes(int count, std::function<void(int, Board&)> body) {
  void* const memory =
      ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  require(memory != MAP_FAILED, "mmap");
  board_ = new (memory) Board;
  std::fflush(nullptr);
  const pid_t parent = ::getpid();
  for (int rank = 0; rank < count; ++rank) {
    const pid_t pid = ::fork();
    require(pid >= 0, "fork");
    if (pid == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != parent) ::_exit(99);
      try {
        body(rank, *board_);
      } catch (const Failure& failure) {
        write_text(board_->posts[rank], failure.what);
        ::_exit(1);
      }
      std::fflush(nullptr);
      ::_exit(0);
    }
    pids_.push_back(pid);
    statuses_.push_back(0);
  }
}

Processes::~Processes() {
  for (const pid_t pid : pids_) {
    if (pid != 0) ::kill(pid, SIGKILL);
  }
  reap(true);
  ::munmap(board_, sizeof(Board));
}

void Processes::signal(int rank, int number) const {
  ::kill(pids_[static_cast<std::size_t>(rank)], number);
}

// True if all have ended.
bool Processes::reap(bool wait) {
  bool all = true;
  for (std::size_t rank = 0; rank < pids_.size(); ++rank) {
    if (pids_[rank] == 0) continue;
    if (::waitpid(pids_[rank], &statuses_[rank], wait ? 0 : WNOHANG) == pids_[rank]) {
      pids_[rank] = 0;
    } else {
      all = false;
    }
  }
  return all;
}

bool Processes::wait_for_stage(int stage, std::chrono::milliseconds timeout) {
  const std::int64_t start = monotonic_ns();
  for (;;) {
    bool all = true;
    for (std::size_t rank = 0; rank < pids_.size(); ++rank) {
      all = all && board_->posts[rank].stage.load(std::memory_order_acquire) >= stage;
    }
    if (all) return true;
    reap(false);
    for (const pid_t pid : pids_) {
      if (pid == 0) return false;
    }
    if (ms_since(start) > static_cast<double>(timeout.count())) return false;
    std::this_thread::sleep_for(1ms);
  }
}

std::vector<std::string> Processes::join(std::chrono::milliseconds timeout, int killed) {
  std::vector<std::string> failures;
  const std::int64_t start = monotonic_ns();
  while (!reap(false)) {
    if (ms_since(start) < static_cast<double>(timeout.count())) {
      std::this_thread::sleep_for(1ms);
      continue;
    }
    for (std::size_t rank = 0; rank < pids_.size(); ++rank) {
      if (pids_[rank] == 0) continue;
      failures.push_back("rank " + std::to_string(rank) + " hangs after stage " +
                         std::to_string(board_->posts[rank].stage.load()));
      ::kill(pids_[rank], SIGKILL);
    }
    reap(true);
    return failures;
  }
  for (std::size_t rank = 0; rank < statuses_.size(); ++rank) {
    const int status = statuses_[rank];
    const bool was_killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    if (static_cast<int>(rank) == killed ? was_killed : status == 0) continue;
    failures.push_back("rank " + std::to_string(rank) + " ended with status " +
                       std::to_string(status) + ": " + board_->posts[rank].text);
  }
  return failures;
}

}  // namespace catenary::testing
