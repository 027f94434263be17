// What fork() and exit() mean to the library's threads. Any thread; only the handler of exit()
// waits, for a bounded time.
//
// A forked child has none of the parent's threads and may hold any of its locks, so in it
// everything that would enqueue, wait or allocate throws. At exit the drivers stop before static
// objects that their tasks may use are destroyed; threads that wait still drive for themselves.
#pragma once

#include <span>

namespace catenary {

class Executor;

// From the first device on, fork and exit are watched.
void watch_process();

// Throws kInvalidUsage in the forked child of a process that used the library.
void require_not_forked();

bool is_forked() noexcept;

// exit() has begun: no thread of the library may take up new work.
bool process_exiting() noexcept;

// All executors of the process, in the order they were made; they are never destroyed.
void add_executor(Executor& executor);
std::span<Executor* const> all_executors() noexcept;
inline constexpr int kMostDevices = 4096;

}  // namespace catenary
