// The part of Executor that sleeps.
#include <sched.h>

#include <algorithm>
#include <mutex>
#include <optional>

#include "src/device/drive_scope.h"
#include "src/device/executor.h"

namespace catenary {

// A sleep that is listed while it may touch doorbells of tasks.
class Executor::SleepScope {
 public:
  SleepScope(Executor& executor, bool heeds_descriptors) : executor_(executor) {
    const std::lock_guard lock(executor_.sleeps_mutex_);
    number_ = executor_.next_sleep_++;
    executor_.sleeps_.push_back(number_);
    sleep_.emplace(executor_.bell_, executor_.alarm_, heeds_descriptors);
  }
  ~SleepScope() {
    sleep_.reset();
    const std::lock_guard lock(executor_.sleeps_mutex_);
    std::erase(executor_.sleeps_, number_);
  }
  Sleep& operator*() noexcept { return *sleep_; }
  Sleep* operator->() noexcept { return &*sleep_; }

 private:
  Executor& executor_;
  std::uint64_t number_ = 0;
  std::optional<Sleep> sleep_;
};

void Executor::quiesce_doorbells() {
  std::uint64_t later = 0;
  {
    const std::lock_guard lock(sleeps_mutex_);
    later = next_sleep_;
  }
  const auto is_old = [later](std::uint64_t number) { return number < later; };
  for (;;) {
    {
      const std::lock_guard lock(sleeps_mutex_);
      if (std::none_of(sleeps_.begin(), sleeps_.end(), is_old)) return;
    }
    bell_.ring();
    ::sched_yield();
  }
}

// Announce, look again, wait; but for long only on bells that have been announced for a while, for
// what rings without a fence (doorbell.h).
void Executor::sleep_until_rung(Backoff& backoff, const Condition& condition,
                                std::int64_t most_ns) {
  SleepScope sleep(*this, backoff.heeds_descriptors());
  bool told = false;
  for (bool is_over = false; !is_over;) {
    if (look_before_sleep(*sleep)) return backoff.restart();
    if (condition.holds() || sleep->is_rung()) break;
    const bool is_settled = now_ns() - sleep->announced_ns() >= Doorbell::kSettled_ns;
    const bool is_last = is_settled || sleep->ends_soon();
    const std::int64_t longest_ns = is_last ? kLongestSleep_ns : Doorbell::kSettled_ns;
    told = sleep->wait(std::min(most_ns, longest_ns), backoff.blind_sleep_ns());
    is_over = is_last || told;
  }
  backoff.after_sleep(told);
}

// Whether something has moved. Only who gets the lock can see what wakes the heads; who does not
// sleeps on the device's own, which the holder rings when it leaves.
bool Executor::look_before_sleep(Sleep& sleep) {
  if (!lock_.try_lock_or_ask()) return false;
  DriveScope drive(*this);
  drive.moved = drain_inbox();
  sleep.begin_anew();
  for (Stream* stream : active_) {
    if (!gated(*stream)) sleep.add(stream->items_.front().task->wakers());
  }
  drive.moved |= pass();
  drive.moved |= check_heads(now_ns());
  drive.watching = !drive.moved;
  return drive.moved;
}

}  // namespace catenary
