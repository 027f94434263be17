// A fork at any moment of the making of a control connection copies none of its sockets.
#include "src/bootstrap/unshared_fd.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "tests/bootstrap/bootstrap_support.h"

namespace catenary {
namespace {

constexpr int kMostDescriptors = 256;

// Fit for the child of a process with threads.
int open_sockets() {
  int count = 0;
  for (int fd = 0; fd < kMostDescriptors; ++fd) {
    struct stat status;
    if (::fstat(fd, &status) == 0 && S_ISSOCK(status.st_mode)) ++count;
  }
  return count;
}

// How many sockets a child forked now has.
int sockets_of_a_child() {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(open_sockets());
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  return WEXITSTATUS(status);
}

TEST(UnsharedFd, is_in_no_child_forked_while_a_connection_is_made) {
  const int before = open_sockets();  // the test may have been started with some
  std::atomic<bool> stop = false;
  std::atomic<int> made = 0;
  std::thread connecting([&] {
    SocketAddress address = SocketAddress::resolve("127.0.0.1:1", AF_INET);
    while (!stop.load()) {
      address.port = 0;
      const UnsharedFd listener = listen_on(address);
      const Connection connection = connect_once(address, within_ms(2000));
      ASSERT_TRUE(connection.fd) << errno_text(connection.error_number);
      ASSERT_TRUE(accept_next(listener.get())) << errno_text(errno);
      made.fetch_add(1);
    }
  });
  while (made.load() == 0) std::this_thread::yield();
  for (int i = 0; i < 300; ++i) EXPECT_EQ(sockets_of_a_child(), before);
  stop.store(true);
  connecting.join();
  EXPECT_GT(made.load(), 1);
}

TEST(UnsharedFd, that_could_not_be_made_is_empty_and_keeps_the_reason) {
  errno = 0;
  const UnsharedFd none = UnsharedFd::made_by([] { return ::dup(-1); });
  EXPECT_FALSE(none);
  EXPECT_EQ(errno, EBADF);
}

}  // namespace
}  // namespace catenary
