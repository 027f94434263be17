// Task: one operation on a stream that advances without ever waiting.
//
// Threads: poll(), check() and fail() are called by whoever drives the device, one thread at a time
// (under the device's drive lock). Waiting: nothing waits. Owner: the stream, from enqueue until
// the task is done; then it is recycled. Failure: poll() and check() may throw; the executor then
// calls fail(), and treats the task as done once that agrees.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <span>

#include "src/base/doorbell.h"

namespace catenary {

class Task {
 public:
  enum class Progress : std::uint8_t { kNone, kSome, kDone };

  virtual ~Task() = default;

  // Does what can be done now. kDone: finished, not to be polled again.
  virtual Progress poll() = 0;

  // The slow look, about once a millisecond while nothing moves and before each sleep: throws when
  // the task can never finish (aborted, a peer died).
  virtual void check() {}

  // poll() or check() threw. Never throws. False: what to make of that will show in a moment, and
  // the task is polled until then, when it throws again. It may not put that off for long, since a
  // stream always completes.
  virtual bool fail(const std::exception& error) noexcept = 0;

  // What tells that poll() may get further, which is asked for before it is polled for the last
  // time before a sleep. Threads may still sleep on it when the task is done; see
  // Device::quiesce_doorbells().
  struct Wakers {
    std::span<Doorbell* const> bells;
    std::span<const int> descriptors;  // become readable; until wakers() is called again
    bool are_all = false;              // nothing else makes poll() get further
  };
  virtual Wakers wakers() { return {}; }

  // Called instead of delete, so that pools can keep their tasks.
  virtual void recycle() noexcept { delete this; }
};

struct TaskRecycler {
  void operator()(Task* task) const noexcept { task->recycle(); }
};
using TaskPtr = std::unique_ptr<Task, TaskRecycler>;

// Whether a task is worth waking a thread for.
enum class Extent : std::uint8_t { kShort, kLong };

}  // namespace catenary
