#include "src/transport/process_runs.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <thread>

namespace catenary {
namespace {

// A child that does `what` and is waited for in the end.
class Child {
 public:
  explicit Child(void (*what)()) : process_(::fork()) {
    if (process_ == 0) {
      what();
      ::_exit(0);
    }
  }
  ~Child() {
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }
  std::uint32_t number() const { return static_cast<std::uint32_t>(process_); }
  char state() const {
    std::string text;
    std::getline(std::ifstream("/proc/" + std::to_string(process_) + "/stat"), text);
    return text.at(text.rfind(')') + 2);
  }
  // Until its first thread has ended.
  void wait_for_first_thread() const {
    while (state() != 'Z') ::usleep(1000);
  }
  // Until all of its threads have, among them one that ThreadSanitizer starts.
  void wait_for_end() const {
    siginfo_t info = {};
    ASSERT_EQ(::waitid(P_PID, number(), &info, WEXITED | WNOWAIT), 0);
  }

 private:
  pid_t process_;
};

TEST(ProcessRuns, is_true_of_who_is_there) {
  EXPECT_TRUE(process_runs(static_cast<std::uint32_t>(::getpid())));
  EXPECT_TRUE(process_runs(1));
}

TEST(ProcessRuns, is_false_of_who_is_not_there) { EXPECT_FALSE(process_runs(0x7ffffff)); }

TEST(ProcessRuns, is_false_of_who_has_ended_and_was_not_waited_for) {
  const Child child([] {});
  child.wait_for_end();
  EXPECT_FALSE(process_runs(child.number()));
}

// Its other threads go on.
TEST(ProcessRuns, is_true_of_who_has_ended_its_first_thread_alone) {
  const Child child([] {
    std::thread([] { ::sleep(60); }).detach();
    ::syscall(SYS_exit, 0);
  });
  child.wait_for_first_thread();
  EXPECT_TRUE(process_runs(child.number()));
}

TEST(ProcessRuns, is_true_where_nothing_can_be_opened) {
  rlimit limit = {};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit none = {0, limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const bool runs = process_runs(static_cast<std::uint32_t>(::getpid()));
  ::setrlimit(RLIMIT_NOFILE, &limit);
  EXPECT_TRUE(runs);
}

}  // namespace
}  // namespace catenary
