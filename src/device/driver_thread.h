// DriverThread: the executor's own thread. It takes over when there is work that nobody waits for.
//
// Armed, it naps and looks whether someone drives; after a while without work it sleeps for good,
// at no cost, until it is armed anew. The thread is made when first armed. Any thread may arm;
// nothing waits. Failure: if no thread can be made the work is left to those who wait for it, with
// a warning.
#pragma once

#include <atomic>
#include <cstdint>

#include "src/base/doorbell.h"

namespace catenary {

class Executor;

class DriverThread {
 public:
  explicit DriverThread(Executor& executor) noexcept : executor_(executor) {}

  // There is work that nobody waits for. Costs a load while the thread is awake.
  void arm() noexcept {
    if (state_.load() != State::kArmed) wake();
  }
  // Work was handed over: it takes over now.
  void hand_over() noexcept;
  // Whether it can: not if there is none, and none can be made.
  bool is_there() noexcept;
  // Whether it polls tasks just now.
  bool at_work() const noexcept { return at_work_.load(); }

 private:
  enum class State : int { kAbsent, kAsleep, kArmed };

  void wake() noexcept;
  void serve();
  void sleep_until_armed();
  void take_over();
  void nap(std::int64_t ns);

  Executor& executor_;
  std::atomic<State> state_{State::kAbsent};
  std::atomic<bool> at_work_{false};
  std::atomic<bool> has_warned_{false};
  DoorbellWords words_;
  Doorbell bell_{words_, false};
};

}  // namespace catenary
