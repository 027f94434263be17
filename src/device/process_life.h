// What fork() and exit() mean to the library's threads. Any thread; only the handler of exit()
// waits, for a bounded time.
//
// A forked child has none of the parent's threads and may hold any of its locks, so in it
// everything that would enqueue, wait or allocate throws. At exit the drivers stop before static
// objects that their tasks may use are destroyed; threads that wait still drive for themselves.
#pragma once

#include <atomic>
#include <cstddef>
#include <span>

namespace catenary {

class Executor;

// From the first device on, fork and exit are watched.
void watch_process();

// What lies behind the functions below. Plain words without destructors: they are looked at until
// the very end.
namespace life {
inline constinit std::atomic<bool> forked{false};
inline constexpr std::size_t kMostExecutors = 4096;
inline constinit Executor* executors[kMostExecutors] = {};
inline constinit std::atomic<std::size_t> executor_count{0};
[[noreturn]] void refuse_forked();
}  // namespace life

inline bool is_forked() noexcept { return life::forked.load(std::memory_order_relaxed); }

// Throws kInvalidUsage in the forked child of a process that used the library.
inline void require_not_forked() {
  if (is_forked()) life::refuse_forked();
}

// exit() has begun: no thread of the library may take up new work.
bool process_exiting() noexcept;

// All executors of the process, in the order they were made; they are never destroyed.
void add_executor(Executor& executor);
inline std::span<Executor* const> all_executors() noexcept {
  return {life::executors, life::executor_count.load(std::memory_order_acquire)};
}
inline constexpr int kMostDevices = static_cast<int>(life::kMostExecutors);

}  // namespace catenary
