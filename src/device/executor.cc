#include "src/device/executor.h"

#include <sched.h>

#include <algorithm>

#include "src/base/scope_exit.h"
#include "src/device/drive_scope.h"
#include "src/device/driver_thread.h"
#include "src/device/process_life.h"
#include "src/topology/machine.h"

namespace catenary {
namespace {

constexpr std::int64_t kCheckEvery_ns = 1'000'000;
constexpr int kTasksPerTurn = 32;  // of one stream, before the others' turn

Task::Progress poll_or_fail(Task& task) noexcept {
  try {
    return task.poll();
  } catch (const std::exception& error) {
    return task.fail(error) ? Task::Progress::kDone : Task::Progress::kNone;
  }
}

// False: it has failed for good.
bool check_or_fail(Task& task) noexcept {
  try {
    task.check();
    return true;
  } catch (const std::exception& error) {
    return !task.fail(error);
  }
}

}  // namespace

// Counts a thread that waits for this executor's work. When it leaves, another one may have to
// look.
class Executor::WatchScope {
 public:
  explicit WatchScope(Executor& executor) noexcept : executor_(executor) {
    executor_.watchers_.fetch_add(1);
  }
  ~WatchScope() {
    executor_.watchers_.fetch_sub(1);
    executor_.bell_.ring();
    executor_.arm_if_unwatched();
  }

 private:
  Executor& executor_;
};

Executor::Executor(int ordinal)
    : ordinal_(ordinal), thread_(std::make_unique<DriverThread>(*this)) {}

Executor::~Executor() = default;

void Executor::note_ranks(int local_ranks, int cores) {
  if (local_ranks > cores) crowded_.store(true, std::memory_order_relaxed);
}

bool Executor::driver_at_work() const noexcept { return thread_->at_work(); }

inline void Executor::make_room(Stream& stream) {
  stream.items_.reserve_one();
  if (stream.items_.empty() && active_.size() == active_.capacity()) make_active_longer();
}

[[gnu::noinline]] void Executor::make_active_longer() { active_.reserve(2 * active_.size() + 1); }

inline void Executor::arm_if_unwatched() {
  if (!unwatched()) return;
  if (has_handed_over()) {
    thread_->hand_over();
  } else {
    thread_->arm();
  }
}

// Where nothing is queued, a task that waits for nobody is done in its first poll, and never enters
// the stream. Room is made before, since what has begun must be taken; and it is counted before,
// since whoever hears of it from what it does may wait for the stream.
inline void Executor::count_in(Stream& stream) {
  make_room(stream);
  count_up(stream.direct_);
  count_up(queued_);
}

inline void Executor::settle(Stream& stream, TaskPtr&& rest) noexcept {
  if (rest != nullptr) return place(stream, std::move(rest), false);
  count_up(stream.finished_);
  count_down(queued_);
  retired_.clear();
}

inline void Executor::begin_alone(Stream& stream, TaskPtr&& task) {
  count_in(stream);
  if (poll_or_fail(*task) == Task::Progress::kDone) task.reset();
  settle(stream, std::move(task));
}

void Executor::submit(Stream& stream, TaskPtr&& task, Extent extent) {
  require_not_forked();
  const bool is_long = extent == Extent::kLong;
  if (is_long) absences_.end();
  if (has_handed_over() || (is_long && absences_.are_usual() && thread_->is_there())) {
    leave_in_inbox(stream, std::move(task), is_long);
  } else {
    submit_here(stream, std::move(task));
  }
  if (is_long) {
    absences_.begin();
  } else {
    absences_.go_on();
  }
}

inline void Executor::submit_here(Stream& stream, TaskPtr&& task) {
  if (lock_.try_lock()) {
    DriveScope drive(*this);
    drive.moved = true;  // or a new head may have a doorbell that no sleeper knows
    if (active_.empty() && inboxed_.load() == 0) {
      begin_alone(stream, std::move(task));
    } else {
      drain_inbox();
      append(stream, std::move(task));
      pass();
    }
  } else {
    put_into_inbox(stream, std::move(task), false);
  }
  count_up(visits_);
  if (inboxed_.load() != 0 && !try_drive()) bell_.ring();
  arm_if_unwatched();
}

void Executor::put_into_inbox(Stream& stream, TaskPtr&& task, bool is_handed_over) {
  const std::lock_guard lock(inbox_mutex_);
  inbox_.reserve_one();
  inbox_.push({&stream, std::move(task), is_handed_over});
  if (is_handed_over) handed_over_.fetch_add(1);
  count_up(stream.inboxed_);
  inboxed_.fetch_add(1);
}

// The caller polls nothing, neither this nor what is before it, so that it takes him no time. Who
// waits is told, and if nobody does, the thread.
void Executor::leave_in_inbox(Stream& stream, TaskPtr&& task, bool is_handed_over) {
  put_into_inbox(stream, std::move(task), is_handed_over);
  bell_.ring();
  arm_if_unwatched();
}

// What is queued alone may be over by now. Of a longer queue, which cannot be, the head would be
// polled twice in each call.
bool Executor::try_at_once(Stream& stream, Beginning& beginning) {
  if (queued_.load() > 1 || inboxed_.load() != 0 || has_handed_over()) return false;
  if (!lock_.try_lock()) return false;
  {
    DriveScope drive(*this);
    if (!active_.empty()) drive.moved = pass();
    if (!active_.empty()) return false;
    drive.moved = true;
    drive.begun = &beginning;
    count_in(stream);
    Beginning::Rest rest;
    const ScopeExit end([&] { settle(stream, std::move(rest.task)); });
    rest = beginning.begin();
    const bool goes_on = rest.task != nullptr && !rest.waits;
    if (goes_on && poll_or_fail(*rest.task) == Task::Progress::kDone) rest.task.reset();
  }
  count_up(visits_);
  if (inboxed_.load() != 0) nudge();  // came meanwhile
  arm_if_unwatched();
  absences_.go_on();
  return true;
}

// Who put something into the inbox tries the lock afterwards, unless he leaves it to those whom he
// wakes, and who unlocks looks into the inbox afterwards. Who unlocks lightly may miss it, and be
// missed: then it is for those whom the first one rings, or the thread that he arms.
bool Executor::try_drive() {
  bool moved = false;
  do {
    if (!lock_.try_lock()) return moved;
    DriveScope drive(*this);
    drive.moved = pass();
    moved |= drive.moved;
  } while (inboxed_.load() != 0);
  return moved;
}

bool Executor::try_hold(const Condition& condition) {
  if (!lock_.try_lock()) return false;
  bool holds = false;
  {
    const DriveScope drive(*this);
    holds = condition.holds();
  }
  if (inboxed_.load() != 0) nudge();  // came meanwhile
  return holds;
}

void Executor::nudge() {
  if (!try_drive()) bell_.ring();
  arm_if_unwatched();
}

bool Executor::drain_inbox() {
  if (inboxed_.load() == 0) return false;
  const std::lock_guard lock(inbox_mutex_);
  while (!inbox_.empty()) {
    Inboxed& first = inbox_.front();
    make_room(*first.stream);
    place(*first.stream, std::move(first.task), first.is_handed_over);
    count_up(queued_);
    inbox_.pop();
    inboxed_.fetch_sub(1);
  }
  return true;
}

void Executor::append(Stream& stream, TaskPtr&& task) {
  make_room(stream);
  count_up(stream.direct_);
  place(stream, std::move(task), false);
  count_up(queued_);
}

void Executor::place(Stream& stream, TaskPtr&& task, bool is_handed_over) noexcept {
  if (stream.items_.empty()) active_.push_back(&stream);
  stream.items_.push_reserved({std::move(task), next_order_++, is_handed_over});
}

bool Executor::pass() {
  bool moved = drain_inbox();
  for (std::size_t i = 0; i < active_.size(); ++i) moved |= advance(*active_[i]);
  if (moved) drop_idle_streams();
  return moved;
}

bool Executor::advance(Stream& stream) {
  bool moved = false;
  for (int turn = 0; turn < kTasksPerTurn && !stream.items_.empty() && !gated(stream); ++turn) {
    const Task::Progress progress = poll_or_fail(*stream.items_.front().task);
    if (progress == Task::Progress::kNone) break;
    moved = true;
    if (progress == Task::Progress::kSome) break;
    finish_head(stream);
  }
  return moved;
}

// The rule of the default stream: between it and a blocking stream, what was enqueued first goes
// first. The oldest head of all is never gated, so something can always go on.
bool Executor::gated(const Stream& stream) const {
  if (stream.kind_ == Stream::Kind::kNonBlocking || active_.size() == 1) return false;
  const std::uint64_t order = stream.items_.front().order;
  for (const Stream* other : active_) {
    if (other == &stream || other->items_.empty()) continue;
    const bool ordered = stream.kind_ == Stream::Kind::kDefault
                             ? other->kind_ == Stream::Kind::kBlocking
                             : other->kind_ == Stream::Kind::kDefault;
    if (ordered && other->items_.front().order < order) return true;
  }
  return false;
}

// The task is given back before anyone can see that it is done.
void Executor::finish_head(Stream& stream) {
  Stream::Item done = stream.items_.pop();
  done.task.reset();
  if (done.is_handed_over) handed_over_.fetch_sub(1);
  count_up(stream.finished_);
  count_down(queued_);
}

void Executor::drop_idle_streams() {
  if (active_.size() != 1) {
    std::erase_if(active_, [](const Stream* stream) { return stream->items_.empty(); });
  } else if (active_.front()->items_.empty()) {
    active_.clear();
  }
  retired_.clear();
}

void Executor::retire(std::shared_ptr<Stream> stream) { retired_.push_back(std::move(stream)); }

// Checks all heads, if the last time is long enough ago. True if one failed.
bool Executor::check_heads(std::int64_t now) {
  if (now - checked_ns_.load(std::memory_order_relaxed) < kCheckEvery_ns) return false;
  checked_ns_.store(now, std::memory_order_relaxed);
  bool moved = false;
  for (Stream* stream : active_) {
    if (gated(*stream) || check_or_fail(*stream->items_.front().task)) continue;
    finish_head(*stream);
    moved = true;
  }
  if (moved) drop_idle_streams();
  return moved;
}

bool Executor::drive_until(const Condition& condition, const Wait& wait) {
  note_return();
  if (condition.holds()) return true;
  require_not_forked();
  const WaitPolicy policy = WaitPolicy::where(crowded());
  if (drive_briefly(condition, policy.looks)) return true;
  const WatchScope watch(*this);
  Backoff backoff(policy);
  for (;;) {
    const bool moved = drive_around();
    if (condition.holds()) return true;
    if (wait.is_cancelled() || wait.deadline.passed()) return false;
    if (moved) {
      backoff.restart();
    } else {
      rest(backoff, condition, std::int64_t{wait.deadline.remaining_ms(50)} * 1'000'000);
    }
  }
}

// The first moments of a wait, in which most waits end: under one hold of the lock, and without
// being a watcher, since whoever enqueued the work has armed the driver thread. Not while somebody
// else has work that only this thread may be there for.
bool Executor::drive_briefly(const Condition& condition, int looks) {
  count_up(visits_);
  const bool holds = look_briefly(condition, looks);
  if (holds && inboxed_.load() != 0) nudge();  // came meanwhile
  return holds;
}

// Ends early where others sleep who may wait for what moved: they are rung at the end only.
bool Executor::look_briefly(const Condition& condition, int looks) {
  if (!lock_.try_lock()) return false;
  DriveScope drive(*this);
  waits_briefly_ = true;
  const ScopeExit no_more([this] { waits_briefly_ = false; });
  const auto needs_help = [this](const Executor* other) {
    return other != this && other->unwatched();
  };
  for (; looks > 0; --looks) {
    if (pass()) {
      drive.moved = true;
      if (condition.holds()) return true;
      if (words_.sleepers.load() != 0) return false;
    } else if (std::ranges::any_of(all_executors(), needs_help)) {
      return false;
    } else if (looks > 1 && pauses_are_short()) {
      cpu_pause();
    }
  }
  return false;
}

// The driver thread's turn: until there is nothing to do, or somebody waits for it himself, or
// comes by with more work and so drives without waiting, unless some was handed over.
void Executor::drive_unwatched() {
  const auto stop = [this, seen = visits()] {
    return !unwatched() || (!has_handed_over() && visits() != seen) || process_exiting();
  };
  const Condition condition(stop);
  Backoff backoff(WaitPolicy::lean());  // nobody waits, and the cores may be busy computing
  while (!condition.holds()) {
    if (try_drive()) {
      backoff.restart();
    } else {
      rest(backoff, condition, kLongestSleep_ns);
    }
  }
  bell_.ring();  // a watcher may have left the heads' doorbells to this thread
}

// Drives this device and, if nothing moves here, those that have work and no watcher: with several
// ranks in one thread only this thread can help them before their own driver threads notice.
bool Executor::drive_around() {
  count_up(visits_);
  if (try_drive()) return true;
  bool moved = false;
  for (Executor* other : all_executors()) {
    if (other == this || !other->unwatched()) continue;
    count_up(other->visits_);
    moved |= other->try_drive();
  }
  return moved;
}

void Executor::visit() {
  require_not_forked();
  note_return();
  if (drive_around()) return;
  check_if_due(now_ns());
  if (crowded()) ::sched_yield();
}

void Executor::rest(Backoff& backoff, const Condition& condition, std::int64_t most_ns) {
  switch (backoff.next()) {
    case Backoff::Step::kPause: cpu_pause(); break;
    case Backoff::Step::kYield: yield(backoff.spreads()); break;
    case Backoff::Step::kSleep: sleep_until_rung(backoff, condition, most_ns); break;
  }
}

void Executor::yield(bool spreads) {
  thread_local CoreSpread spread;
  const std::int64_t before = now_ns();
  ::sched_yield();
  const std::int64_t after = now_ns();
  if (spreads) spread.yielded(before, after);
  check_if_due(after);
}

void Executor::check_if_due(std::int64_t now) {
  if (now - checked_ns_.load(std::memory_order_relaxed) < kCheckEvery_ns) return;
  if (!lock_.try_lock()) return;
  DriveScope drive(*this);
  drive.moved = check_heads(now);
}

}  // namespace catenary
