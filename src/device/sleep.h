// Sleep: one sleep of a thread that drives a device: all that may wake it, announced before the
// last look at the work.
//
// Doorbells ring from memory, descriptors become readable where the system tells of news, and no
// call waits for both. Where there are descriptors, one thread of a device waits for those, and for
// the device's own bell, which then writes to a descriptor, too (Alarm); other bells are found by
// looking again soon. Other threads of that device sleep as if there were no descriptors: they
// are rung by the first one when something has moved.
//
// Threads: a Sleep belongs to one, an Alarm to a device. Only wait() waits. Nothing fails.
#pragma once

#include <poll.h>

#include <atomic>
#include <cstdint>
#include <span>

#include "src/base/doorbell.h"
#include "src/device/task.h"

namespace catenary {

// What makes a device's bell wake a thread that waits for descriptors. Lives as long as the process
// does.
class Alarm {
 public:
  // Made at once, so that what a process holds open does not depend on who has slept.
  Alarm() noexcept { make(); }

  // For the bell. Below 0 while nobody waits for it.
  const std::atomic<int>& awaited() const noexcept { return awaited_; }

 private:
  friend class Sleep;
  void make() noexcept;
  // False if another thread has it, or there is none to be had. What was rung before is forgotten.
  bool try_take() noexcept;
  void give_back() noexcept;

  std::atomic<bool> is_taken_{false};
  int descriptor_ = -1;  // of who has taken it
  std::atomic<int> awaited_{-1};
};

class Sleep {
 public:
  // Announced at the device's own bell from the first. `heeds_descriptors`: or else it is blind to
  // them.
  Sleep(Doorbell& own, Alarm& alarm, bool heeds_descriptors) noexcept
      : alarm_(alarm), heeds_descriptors_(heeds_descriptors) {
    add(&own);
  }
  ~Sleep();
  Sleep(const Sleep&) = delete;
  Sleep& operator=(const Sleep&) = delete;

  // To be called before the last look. What cannot wake it is found by looking again soon.
  void add(const Task::Wakers& wakers) noexcept;
  // All are to be added anew; those that were stay announced.
  void begin_anew() noexcept;
  // Since when all bells have been announced.
  std::int64_t announced_ns() const noexcept { return announced_ns_; }
  // Whether one of them has rung since it was announced.
  bool is_rung() const noexcept;
  // Whether a wait is no longer than `blind_ns`.
  bool ends_soon() const noexcept { return is_blind_ || (has_alarm_ && bell_count_ > 1); }
  // No longer than `most_ns`; than `blind_ns`, where something may happen that does not wake it.
  // Whether a descriptor has told of something.
  bool wait(std::int64_t most_ns, std::int64_t blind_ns) noexcept;

 private:
  bool add(Doorbell* bell) noexcept;
  bool add_descriptors(std::span<const int> descriptors) noexcept;

  static constexpr int kMostBells = 32;  // what Doorbell::wait_any watches
  static constexpr int kMostDescriptors = 32;
  Alarm& alarm_;
  const bool heeds_descriptors_;
  bool is_blind_ = false;
  bool has_alarm_ = false;
  int bell_count_ = 0;
  std::int64_t announced_ns_ = 0;
  int descriptor_count_ = 0;  // the alarm's is the first
  Doorbell* bells_[kMostBells];
  Doorbell::Ticket tickets_[kMostBells];
  pollfd descriptors_[kMostDescriptors];
};

}  // namespace catenary
