#include "src/transport/writer_watch.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "tests/base/ring_memory.h"

namespace catenary {
namespace {

// A process that has ended and was not waited for yet.
class Dead {
 public:
  Dead() : process_(::fork()) {
    if (process_ == 0) ::_exit(0);
    siginfo_t info;
    ::waitid(P_PID, static_cast<id_t>(process_), &info, WEXITED | WNOWAIT);
  }
  ~Dead() { ::waitpid(process_, nullptr, 0); }
  std::uint32_t number() const { return static_cast<std::uint32_t>(process_); }

 private:
  pid_t process_;
};

TEST(WriterWatch, knows_who_runs) {
  EXPECT_TRUE(process_runs(static_cast<std::uint32_t>(::getpid())));
  EXPECT_TRUE(process_runs(static_cast<std::uint32_t>(::getppid())));
  EXPECT_FALSE(process_runs(0xfffffff));
  const Dead dead;
  EXPECT_FALSE(process_runs(dead.number()));
}

TEST(WriterWatch, waits_for_no_one_who_is_dead) {
  const SlotRingShape shape{2, 1024};
  const RingMemory memory(shape);
  SlotProducer producer(memory.get(), shape);
  SlotConsumer consumer(memory.get(), shape);
  const Dead dead;
  ASSERT_TRUE(consumer.try_begin_writing(dead.number()));
  producer.withdraw();
  const std::int64_t begin = now_ns();
  wait_for_writer(producer);
  EXPECT_LT(now_ns() - begin, 2'000'000'000);
  EXPECT_EQ(producer.writer(), dead.number());
}

}  // namespace
}  // namespace catenary
