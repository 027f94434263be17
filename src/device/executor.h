// Executor: what makes the work of one device advance.
//
// Every stream's head task is polled in turn, under the drive lock; no task can hold up another.
// What is submitted while nothing is queued is polled first, and enters its stream only if it must
// wait. Who waits, drives: submit() tries at once what can be done without waiting, drive_until()
// polls until its condition holds, and only when there is work and nobody waits for it does the
// executor's own thread take over. An idle executor uses no processor time at all.
//
// Threads: any. Nothing here waits but drive_until. Owner: the device; an executor is never
// destroyed, since its thread may run until the process ends. Failure: a task that throws is told
// through fail(), and counts as done when it agrees.
//
// Who is responsible for work that is pending, so that none is forgotten: a thread inside
// drive_until (a watcher), else the executor's thread, which is awake ("armed") whenever there is
// pending work without a watcher. Whoever leaves pending work behind arms it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <type_traits>
#include <vector>

#include "src/base/clock.h"
#include "src/base/doorbell.h"
#include "src/device/absences.h"
#include "src/device/core_spread.h"
#include "src/device/counter.h"
#include "src/device/drive_lock.h"
#include "src/device/sleep.h"
#include "src/device/stream.h"
#include "src/device/task.h"
#include "src/device/wait_policy.h"

namespace catenary {

class DriverThread;

// A condition that a wait ends with, without owning it.
class Condition {
 public:
  template <typename Predicate>
  requires(!std::is_same_v<std::remove_cvref_t<Predicate>, Condition>) explicit Condition(
      Predicate& predicate) noexcept
      : object_(const_cast<void*>(static_cast<const void*>(&predicate))),
        holds_([](void* object) -> bool { return (*static_cast<Predicate*>(object))(); }) {}
  bool holds() const { return holds_(object_); }

 private:
  void* object_;
  bool (*holds_)(void*);
};

// Something that need not be a task: what can be done at once is over then, and a task does what is
// left.
class Beginning {
 public:
  struct Rest {
    TaskPtr task;        // null: nothing is left
    bool waits = false;  // for what was looked for just now: it need not be polled at once
  };
  // Under the drive lock. What was done although it throws is its own affair.
  virtual Rest begin() = 0;
  // After that lock was given back; also if begin() has thrown.
  virtual void tell_peers() noexcept {}

 protected:
  ~Beginning() = default;
};

class Executor {
 public:
  explicit Executor(int ordinal);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // Appends the task to the stream and tries at once what can be done without waiting, or hands it
  // over to the executor's thread, if it is long and callers go away, or if that is so of what is
  // queued. Throws only if memory runs out or the process is a forked child; the task is then the
  // caller's still.
  void submit(Stream& stream, TaskPtr&& task, Extent extent);

  // The same for what may not need a task. Throws what begin() throws. False: it was not begun,
  // because something is queued on this device, or somebody else drives, or is to drive.
  bool try_at_once(Stream& stream, Beginning& beginning);

  // Waits here and drives until the condition holds; false if the wait ended before. The condition
  // is asked without locks, or under the drive lock, at least every 50 ms; whoever makes it true
  // from outside of this device's tasks rings the doorbell.
  bool drive_until(const Condition& condition, const Wait& wait);

  // Polls each head once if nobody else drives; true if something moved.
  bool try_drive();

  // Asks the condition under the drive lock, when no task is polled, so that it may look at what
  // tasks use. False also if somebody else drives just now.
  bool try_hold(const Condition& condition);

  // For a thread that asks again and again instead of waiting: drives once, here and where nobody
  // waits, and lends its core to others if it is needed there.
  void visit();

  // Somebody asks for what may be over already: he is not away.
  void note_return() noexcept {
    absences_.end();
    count_up(returns_);
  }
  // How often somebody has waited here or asked whether he would have to, roughly.
  std::uint64_t returns() const noexcept { return returns_.load(std::memory_order_relaxed); }

  // Something outside of poll() finished: tries at once to go on, and wakes whoever sleeps.
  void nudge();

  bool pending() const noexcept { return queued_.load() != 0 || inboxed_.load() != 0; }
  // Pending, and no thread waits for it.
  bool unwatched() const noexcept { return pending() && watchers_.load() == 0; }
  // Something that is not over was handed over to the executor's thread.
  bool has_handed_over() const noexcept { return handed_over_.load() != 0; }
  // A thread waits for something here. From poll(): it may do what only who waits has time for.
  bool is_waited_for() const noexcept {
    return waits_briefly_ || watchers_.load(std::memory_order_relaxed) > 0;
  }

  Doorbell& doorbell() noexcept { return bell_; }
  int ordinal() const noexcept { return ordinal_; }

  // Returns when every thread that slept on doorbells of tasks has woken up and looked anew.
  void quiesce_doorbells();

  // Keeps a stream until the pass at hand is over. For a task of that stream, from poll().
  void retire(std::shared_ptr<Stream> stream);
  // Whether the executor's own thread polls tasks just now.
  bool driver_at_work() const noexcept;

  // So many ranks share so many cores of this machine. Once there are more ranks than cores, waits
  // keep no core, for ever.
  void note_ranks(int local_ranks, int cores);
  bool crowded() const noexcept { return crowded_.load(std::memory_order_relaxed); }

 private:
  friend class DriverThread;
  class DriveScope;
  class WatchScope;
  class SleepScope;
  struct Inboxed {
    Stream* stream;
    TaskPtr task;
    bool is_handed_over;
  };

  // All of these need the drive lock.
  bool pass();
  void count_in(Stream& stream);
  void settle(Stream& stream, TaskPtr&& rest) noexcept;
  void begin_alone(Stream& stream, TaskPtr&& task);
  void submit_here(Stream& stream, TaskPtr&& task);
  void leave_in_inbox(Stream& stream, TaskPtr&& task, bool is_handed_over);
  void put_into_inbox(Stream& stream, TaskPtr&& task, bool is_handed_over);
  bool drain_inbox();
  void append(Stream& stream, TaskPtr&& task);
  void make_room(Stream& stream);
  void make_active_longer();
  void place(Stream& stream, TaskPtr&& task, bool is_handed_over) noexcept;
  bool advance(Stream& stream);
  bool gated(const Stream& stream) const;
  void finish_head(Stream& stream);
  void drop_idle_streams();
  bool check_heads(std::int64_t now);

  bool drive_briefly(const Condition& condition, int looks);
  bool look_briefly(const Condition& condition, int looks);
  void drive_unwatched();
  bool drive_around();
  void arm_if_unwatched();
  // Only what is left behind needs the fence: somebody has to be responsible for it.
  bool unlock() noexcept { return queued_.load() == 0 ? lock_.unlock_lightly() : lock_.unlock(); }
  void rest(Backoff& backoff, const Condition& condition, std::int64_t most_ns);
  void yield(bool spreads);
  void check_if_due(std::int64_t now);
  bool look_before_sleep(Sleep& sleep);
  void sleep_until_rung(Backoff& backoff, const Condition& condition, std::int64_t most_ns);
  std::uint64_t visits() const noexcept { return visits_.load(std::memory_order_relaxed); }

  static constexpr std::int64_t kLongestSleep_ns = 50'000'000;  // then look at everything again
  static constexpr std::size_t kApart = 128;  // processors fetch cache lines in pairs

  const int ordinal_;
  std::atomic<bool> crowded_{false};
  DoorbellWords words_;
  Alarm alarm_;
  Doorbell bell_{words_, false, &alarm_.awaited()};

  // Threads of other devices look at these between their own polls, to see who needs help. What is
  // written in every round lies apart from them, or each look would take the line away.
  alignas(kApart) Counter queued_{0};  // tasks in streams; written under the lock
  Counter inboxed_{0};                 // tasks in the inbox
  std::atomic<int> watchers_{0};       // threads within drive_until

  alignas(kApart) DriveLock lock_;
  Counter returns_{0};
  Counter visits_{0};  // rounds that other threads than the driver's drove, roughly
  std::atomic<std::int64_t> checked_ns_{0};  // when heads were last checked
  std::atomic<int> handed_over_{0};          // tasks that the driver is to do, not yet done
  Absences absences_;
  // Under the drive lock.
  std::vector<Stream*> active_;                   // streams that have queued tasks
  std::vector<std::shared_ptr<Stream>> retired_;  // freed when the pass is over
  std::uint64_t next_order_ = 0;
  bool waits_briefly_ = false;  // who drives has begun to wait, and is no watcher yet

  // The sleeps going on, by number.
  std::mutex sleeps_mutex_;
  std::vector<std::uint64_t> sleeps_;
  std::uint64_t next_sleep_ = 0;

  // What came while somebody else drove.
  std::mutex inbox_mutex_;
  RingQueue<Inboxed> inbox_;

  std::unique_ptr<DriverThread> thread_;
};

}  // namespace catenary
