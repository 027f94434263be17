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

  // What rings when poll() may get further. Empty: nothing does, poll again soon. Threads may still
  // sleep on one when the task is done; see Device::quiesce_doorbells().
  virtual std::span<Doorbell* const> doorbells() { return {}; }

  // Called instead of delete, so that pools can keep their tasks.
  virtual void recycle() noexcept { delete this; }
};

struct TaskRecycler {
  void operator()(Task* task) const noexcept { task->recycle(); }
};
using TaskPtr = std::unique_ptr<Task, TaskRecycler>;

}  // namespace catenary
