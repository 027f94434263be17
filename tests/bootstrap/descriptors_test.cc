// A process of its own, since what is short of file descriptors is a whole process, and others of
// its threads could close one.
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

#include "src/base/scope_exit.h"
#include "src/base/unique_fd.h"
#include "src/bootstrap/membership.h"
#include "tests/bootstrap/bootstrap_support.h"

namespace catenary {
namespace {

// Leaves so many descriptors to be had, until the result goes.
[[nodiscard]] auto only_so_many(int count) {
  rlimit before = {};
  EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  std::vector<UniqueFd> lowest_free;
  for (int i = 0; i < count; ++i) lowest_free.emplace_back(::dup(STDERR_FILENO));
  const rlimit few = {static_cast<rlim_t>(lowest_free.back().get()) + 1, before.rlim_max};
  EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  return ScopeExit([before] { EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0); });
}

// Whether all has been said for now: as many milliseconds as a thread may well lose its core for.
bool is_quiet(int fd) {
  tcp_info info = {};
  socklen_t bytes = sizeof info;
  return ::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &bytes) == 0 &&
         info.tcpi_bytes_received > 0 && info.tcpi_last_data_recv >= 300;
}

int quiet_sockets() {
  int count = 0;
  for (int fd = 3; fd < 256; ++fd) count += is_quiet(fd);
  return count;
}

// The caller takes the last one, and there is none to accept it with.
TEST(OutOfDescriptors, ranks_are_told_why_others_do_not_come) {
  const Config config = loopback();
  const UniqueId id = create_unique_id(config);
  const auto errors = run_ranks(2, [&](int rank) {
    if (rank == 0) return static_cast<void>(Membership(id, 0, 2, within_ms(3000), config));
    // Its connection has two ends, and it opens nothing after that. The root makes room by letting
    // go who has not said yet who he is, which is not to be rank 0.
    const Deadline in_time = Deadline::after_ms(2500);
    while (quiet_sockets() < 2 && !in_time.passed()) std::this_thread::yield();
    const auto until_the_end = only_so_many(1);
    Membership(id, 1, 2, within_ms(5000), config);
  });
  expect_error(errors[0], ErrorCode::kTimeout, "rank 1 of 2 did not come within ");
  expect_error(errors[0], ErrorCode::kTimeout,
               " s; the root's process cannot accept connections: Too many open files (24); see "
               "ulimit -n");
  EXPECT_TRUE(errors[1].has_value());
}

// One for the caller, and one to accept it with: that there is no other says nothing while nobody
// else calls.
TEST(OutOfDescriptors, is_no_reason_while_nobody_calls) {
  const Config config = loopback();
  const UniqueId id = create_unique_id(config);
  const auto errors = run_ranks(1, [&](int rank) {
    const auto until_the_end = only_so_many(2);
    Membership(id, rank, 2, within_ms(2000), config);
  });
  expect_error(errors[0], ErrorCode::kTimeout, "rank 1 of 2 did not come within ");
  EXPECT_EQ(std::string(errors[0]->what()).find("accept"), std::string::npos) << errors[0]->what();
}

}  // namespace
}  // namespace catenary
