#include "tests/support/rank_group.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <mutex>
#include <thread>

namespace catenary::testing {
namespace {

using Body = std::function<void(int, int, const ncclUniqueId&)>;

std::vector<std::string> run_threads(int first_rank, int threads, int nranks,
                                     const ncclUniqueId& id, const Body& body) {
  std::vector<std::string> failures;
  std::mutex mutex;
  std::vector<std::thread> ranks;
  for (int i = 0; i < threads; ++i) {
    ranks.emplace_back([&, rank = first_rank + i] {
      try {
        body(rank, nranks, id);
      } catch (const Failure& failure) {
        const std::lock_guard lock(mutex);
        failures.push_back("rank " + std::to_string(rank) + ": " + failure.what);
      }
    });
  }
  for (std::thread& rank : ranks) rank.join();
  return failures;
}

void write_all(int fd, const void* data, std::size_t bytes) {
  const char* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t written = ::write(fd, at, bytes);
    if (written <= 0) _exit(98);
    at += written;
    bytes -= static_cast<std::size_t>(written);
  }
}

void read_all(int fd, void* data, std::size_t bytes) {
  char* at = static_cast<char*>(data);
  while (bytes > 0) {
    const ssize_t got = ::read(fd, at, bytes);
    if (got <= 0) _exit(97);
    at += got;
    bytes -= static_cast<std::size_t>(got);
  }
}

struct Child {
  pid_t pid = -1;
  int id_fd = -1;  // the parent writes the unique id here; the first child writes its own to `made`
  int report_fd = -1;  // the parent reads failures here until the child ends
  std::string report;
  bool open = true;
};

[[noreturn]] void be_child(int index, const Shape& shape, const Body& body, int id_in, int id_out,
                           int report_out) {
  ncclUniqueId id;
  if (index == 0) {
    if (ncclGetUniqueId(&id) != ncclSuccess) _exit(96);
    write_all(id_out, id.internal, sizeof id.internal);
  } else {
    read_all(id_in, id.internal, sizeof id.internal);
  }
  std::string text;
  for (const std::string& failure :
       run_threads(index * shape.threads, shape.threads, shape.ranks(), id, body)) {
    text += failure + "\n";
  }
  write_all(report_out, text.data(), text.size());
  std::fflush(nullptr);
  _exit(text.empty() ? 0 : 1);
}

void collect(std::vector<Child>& children, int timeout_s, std::vector<std::string>& failures) {
  const std::time_t until = std::time(nullptr) + timeout_s;
  for (std::size_t left = children.size(); left > 0;) {
    std::vector<pollfd> polled;
    for (const Child& child : children)
      polled.push_back({child.open ? child.report_fd : -1, POLLIN, 0});
    ::poll(polled.data(), polled.size(), 200);
    if (std::time(nullptr) > until) {
      failures.push_back("ranks did not end within " + std::to_string(timeout_s) + " s");
      for (const Child& child : children) ::kill(child.pid, SIGKILL);
      return;
    }
    for (std::size_t i = 0; i < children.size(); ++i) {
      if (polled[i].revents == 0) continue;
      char text[4096];
      const ssize_t got = ::read(children[i].report_fd, text, sizeof text);
      if (got > 0) {
        children[i].report.append(text, static_cast<std::size_t>(got));
      } else {
        children[i].open = false;
        --left;
      }
    }
  }
}

std::vector<std::string> run_processes(const Shape& shape, const Body& body, int timeout_s) {
  std::vector<Child> children(static_cast<std::size_t>(shape.processes));
  int made[2];
  if (::pipe2(made, O_CLOEXEC) != 0) return {"cannot make a pipe"};
  for (std::size_t i = 0; i < children.size(); ++i) {
    int id_pipe[2];
    int report_pipe[2];
    if (::pipe2(id_pipe, O_CLOEXEC) != 0 || ::pipe2(report_pipe, O_CLOEXEC) != 0)
      return {"cannot make a pipe"};
    std::fflush(nullptr);
    const pid_t pid = ::fork();
    if (pid == 0) be_child(static_cast<int>(i), shape, body, id_pipe[0], made[1], report_pipe[1]);
    ::close(id_pipe[0]);
    ::close(report_pipe[1]);
    children[i] = {pid, id_pipe[1], report_pipe[0], {}, true};
  }
  char id[NCCL_UNIQUE_ID_BYTES];
  ::close(made[1]);
  read_all(made[0], id, sizeof id);
  ::close(made[0]);
  for (std::size_t i = 1; i < children.size(); ++i) write_all(children[i].id_fd, id, sizeof id);
  std::vector<std::string> failures;
  collect(children, timeout_s, failures);
  for (Child& child : children) {
    int status = 0;
    ::waitpid(child.pid, &status, 0);
    ::close(child.id_fd);
    ::close(child.report_fd);
    if (!child.report.empty()) failures.push_back(child.report);
    if (child.report.empty() && status != 0) {
      failures.push_back("process " + std::to_string(child.pid) + " ended with status " +
                         std::to_string(status));
    }
  }
  return failures;
}

}  // namespace

void require_success(ncclResult_t result, const std::string& what) {
  if (result == ncclSuccess) return;
  throw Failure{what + ": " + ncclGetErrorString(result) + " / " + ncclGetLastError(nullptr)};
}

std::vector<std::string> run_ranks(const Shape& shape, const Body& body, int timeout_s) {
  if (shape.processes > 1) return run_processes(shape, body, timeout_s);
  ncclUniqueId id;
  if (ncclGetUniqueId(&id) != ncclSuccess)
    return {std::string("ncclGetUniqueId: ") + ncclGetLastError(nullptr)};
  return run_threads(0, shape.threads, shape.ranks(), id, body);
}

}  // namespace catenary::testing
