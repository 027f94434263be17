#include "src/device/process_life.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <mutex>

#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/device/executor.h"

namespace catenary {
namespace {

constexpr std::int64_t kLongestExit_ns = 200'000'000;

constinit std::atomic<bool> exiting{false};
constinit std::mutex adding;

void stop_drivers() {
  if (is_forked()) return;
  exiting.store(true);
  const std::int64_t until = now_ns() + kLongestExit_ns;
  for (Executor* executor : all_executors()) {
    executor->doorbell().ring();
    while (executor->driver_at_work() && now_ns() < until) ::usleep(200);
  }
}

}  // namespace

void watch_process() {
  static const bool watching = [] {
    ::pthread_atfork(nullptr, nullptr, [] { life::forked.store(true); });
    std::atexit(stop_drivers);
    return true;
  }();
  static_cast<void>(watching);
}

void life::refuse_forked() {
  throw_error(ErrorCode::kInvalidUsage,
              "process %d was forked from one that had used Catenary already, and has neither its "
              "threads nor its devices: fork before the first call, or exec",
              static_cast<int>(::getpid()));
}

bool process_exiting() noexcept { return exiting.load(); }

void add_executor(Executor& executor) {
  const std::lock_guard lock(adding);
  const std::size_t count = life::executor_count.load();
  life::executors[count] = &executor;
  life::executor_count.store(count + 1);
}

}  // namespace catenary
