// Ranks as processes that a test may stop or kill, and a board in shared memory on which they and
// the test write what the other side must know.
//
// The test's own process must never touch the library: a process that has used it may not fork
// ranks. Ranks end with the test, however that ends.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "nccl.h"

namespace catenary::testing {

inline constexpr int kMostProcesses = 64;

// What one rank says. The numbers mean what the test wants them to.
struct Post {
  std::atomic<int> stage{0};
  double numbers[4] = {};
  char text[1024] = "";
};

struct Board {
  std::atomic<bool> go{false};
  std::atomic<std::int64_t> event_ns{0};  // of the monotonic clock
  std::atomic<bool> has_id[2] = {false, false};
  ncclUniqueId ids[2];
  Post posts[kMostProcesses];

  // Makes an id for the others to find, or waits for that.
  ncclUniqueId id(bool make, int which = 0);
  void wait_for_go() const;
};

std::int64_t monotonic_ns();
double ms_since(std::int64_t then_ns);
void write_text(Post& post, const std::string& text);
// The open descriptors of this process and where they lead, and its mappings of memory files. But
// not the sockets that listen: where an id was made, its meeting point stays open for a while.
std::vector<std::string> open_files();
// The first mapping of this process that holds `text`, or "".
std::string mapping_with(const std::string& text);

class Processes {
 public:
  // Forks `count` ranks that run body; a Failure thrown there is their last text, and status 1.
  Processes(int count, std::function<void(int rank, Board& board)> body);
  ~Processes();
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;

  Board& board() { return *board_; }
  void signal(int rank, int number) const;
  // Waits until all ranks have come to a stage. False after the timeout, or if one has ended
  // before.
  bool wait_for_stage(int stage, std::chrono::milliseconds timeout);
  // Waits until all ranks have ended, and returns what was wrong with that, an entry per rank.
  // Those that do not end are killed. `killed`: the rank that must have died of SIGKILL, or -1.
  std::vector<std::string> join(std::chrono::milliseconds timeout, int killed = -1);

 private:
  bool reap(bool wait);

  Board* board_;
  std::vector<pid_t> pids_;  // 0: has ended
  std::vector<int> statuses_;
};

}  // namespace catenary::testing
