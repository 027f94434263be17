// Processes without a launcher: the tool forks them before it has a thread or a communicator.
//
// The children form a star of socket pairs around process 0. The parent holds none of the sockets;
// it only watches: one child's failure, or a signal to the parent, ends all of them, so that
// nobody waits for a process that will not come.
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "bench/perf/failure.h"
#include "bench/perf/launcher.h"

namespace catenary::perf {
namespace {

// How long children may take to die of SIGTERM before they get SIGKILL.
constexpr timespec kGrace = {2, 0};

// One end of a socket pair.
class Socket {
 public:
  explicit Socket(int fd) : fd_(fd) {}
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Socket() {
    if (fd_ >= 0) close(fd_);
  }
  int fd() const { return fd_; }

 private:
  int fd_;
};

void write_all(int fd, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t done = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) throw_errno("send to another process of this run", errno);
    bytes = bytes.subspan(static_cast<std::size_t>(done));
  }
}

void read_all(int fd, std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t done = recv(fd, bytes.data(), bytes.size(), 0);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0 && errno == EAGAIN) {
      throw TestFailure(failure_line("timeout", "another process of this run does not answer",
                                     std::source_location::current()));
    }
    if (done < 0) throw_errno("receive from another process of this run", errno);
    if (done == 0) {
      throw TestFailure(failure_line("launcher", "another process of this run has ended",
                                     std::source_location::current()));
    }
    bytes = bytes.subspan(static_cast<std::size_t>(done));
  }
}

// The children's view. Process 0 has a socket to every other; every other has one, to process 0.
class ForkedProcess final : public Launcher {
 public:
  ForkedProcess(int process, int processes, std::vector<Socket> peers)
      : process_(process), processes_(processes), peers_(std::move(peers)) {}

  Place place() const override { return {process_, processes_, process_, processes_}; }

  void barrier() override {
    const std::byte mine{};
    std::vector<std::byte> all(static_cast<std::size_t>(processes_));
    all_gather({&mine, 1}, all);
  }

  void broadcast(std::span<std::byte> bytes, int root) override {
    if (root != 0) throw std::logic_error("process 0 is the only root that is needed");
    if (process_ != 0) return read_all(peers_[0].fd(), bytes);
    for (const Socket& peer : peers_) write_all(peer.fd(), bytes);
  }

  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    if (process_ != 0) {
      write_all(peers_[0].fd(), mine);
    } else {
      std::copy(mine.begin(), mine.end(), all.begin());
      for (std::size_t i = 0; i < peers_.size(); ++i) {
        read_all(peers_[i].fd(), all.subspan((i + 1) * mine.size(), mine.size()));
      }
    }
    broadcast(all, 0);
  }

  void limit_waiting(std::chrono::seconds most) override {
    const timeval limit{.tv_sec = most.count(), .tv_usec = 0};
    for (const Socket& peer : peers_) {
      if (setsockopt(peer.fd(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) != 0) {
        throw_errno("setsockopt SO_RCVTIMEO", errno);
      }
    }
  }

  void abort() override {}  // the parent notices

 private:
  const int process_;
  const int processes_;
  std::vector<Socket> peers_;
};

// Ends what is left, politely and then not, and collects it.
void end_children(const std::vector<pid_t>& children, const sigset_t& signals) {
  for (const pid_t child : children) {
    if (child > 0) kill(child, SIGTERM);
  }
  timespec left = kGrace;
  for (const pid_t child : children) {
    if (child <= 0) continue;
    while (waitpid(child, nullptr, WNOHANG) == 0) {
      if (sigtimedwait(&signals, nullptr, &left) < 0 && errno == EAGAIN) {
        kill(child, SIGKILL);
        waitpid(child, nullptr, 0);
        left = {0, 0};
        break;
      }
    }
  }
}

// What all processes find wrong only the first one says, and others may be done sooner.
void let_first_speak(std::vector<pid_t>& children) {
  constexpr int kMost_ms = 100;
  for (int waited_ms = 0; children[0] > 0 && waited_ms < kMost_ms; ++waited_ms) {
    if (waitpid(children[0], nullptr, WNOHANG) > 0) children[0] = 0;
    usleep(1000);
  }
}

// The parent's life: waits until all children are done, or one has failed, or a signal comes.
// Returns the exit status of the run.
int watch_over(std::vector<pid_t> children, const sigset_t& signals) {
  std::size_t running = children.size();
  while (running > 0) {
    const int signal_number = sigwaitinfo(&signals, nullptr);
    if (signal_number < 0) continue;  // EINTR by a signal that is not ours
    if (signal_number != SIGCHLD) {
      end_children(children, signals);
      return 128 + signal_number;
    }
    int result = EXIT_SUCCESS;
    for (std::size_t i = 0; i < children.size(); ++i) {
      int status = 0;
      if (children[i] <= 0 || waitpid(children[i], &status, WNOHANG) <= 0) continue;
      children[i] = 0;
      --running;
      if (status == 0) continue;
      result = WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILURE;
      if (!WIFSIGNALED(status)) continue;  // then it has said why itself
      std::fprintf(stderr, "%s: process %zu of %zu was ended by signal %d (%s)\n",
                   host_name().c_str(), i, children.size(), WTERMSIG(status),
                   strsignal(WTERMSIG(status)));
    }
    if (result != EXIT_SUCCESS) {
      let_first_speak(children);
      end_children(children, signals);
      return result;
    }
  }
  return EXIT_SUCCESS;
}

// Sockets of process 0, and the one of each other process; index 0 of `others` stays empty.
struct Star {
  std::vector<Socket> center;
  std::vector<Socket> others;
};

Star make_star(int procs) {
  Star star;
  star.others.emplace_back(-1);
  for (int i = 1; i < procs; ++i) {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
      throw_errno("socketpair", errno);
    }
    star.center.emplace_back(pair[0]);
    star.others.emplace_back(pair[1]);
  }
  return star;
}

std::unique_ptr<Launcher> begin_child(int process, int procs, Star star, pid_t parent,
                                      const sigset_t& old_mask) {
  // Where the parent is killed outright, the children must not stay behind.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(EXIT_FAILURE);
  sigprocmask(SIG_SETMASK, &old_mask, nullptr);
  if (process == 0) return std::make_unique<ForkedProcess>(0, procs, std::move(star.center));
  std::vector<Socket> mine;
  mine.push_back(std::move(star.others[static_cast<std::size_t>(process)]));
  return std::make_unique<ForkedProcess>(process, procs, std::move(mine));
}

}  // namespace

std::unique_ptr<Launcher> fork_processes(int procs) {
  sigset_t signals;
  sigset_t old_mask;
  sigemptyset(&signals);
  for (const int number : {SIGCHLD, SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, number);
  sigprocmask(SIG_BLOCK, &signals, &old_mask);

  Star star = make_star(procs);
  const pid_t parent = getpid();
  std::vector<pid_t> children;
  std::fflush(nullptr);  // or what is buffered would be printed by every child again
  for (int process = 0; process < procs; ++process) {
    const pid_t child = fork();
    if (child == 0) return begin_child(process, procs, std::move(star), parent, old_mask);
    if (child < 0) {
      const int error = errno;
      end_children(children, signals);
      throw_errno("fork", error);
    }
    children.push_back(child);
  }
  star = Star{};
  std::exit(watch_over(std::move(children), signals));
}

}  // namespace catenary::perf
