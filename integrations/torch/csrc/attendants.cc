#include "attendants.h"

#include <thread>
#include <vector>

namespace catenary_torch {
namespace {

constexpr std::chrono::milliseconds kTick{100};
constexpr std::chrono::seconds kLong{1};

}  // namespace

Watch& Watch::of_process() {
  static auto* watch = new Watch;
  return *watch;
}

void Watch::add(const c10::intrusive_ptr<CatenaryWork>& work) {
  const std::lock_guard lock(mutex_);
  works_.push_back(work);
  work->watched_ = std::prev(works_.end());
  work->is_watched_ = true;
  if (!started_) std::thread([this] { serve(); }).detach();
  started_ = true;
  if (asleep_) changed_.notify_one();
}

void Watch::remove(CatenaryWork& work) {
  c10::intrusive_ptr<CatenaryWork> kept;  // outlives the lock: it may be the last one
  const std::lock_guard lock(mutex_);
  if (!work.is_watched_) return;
  work.is_watched_ = false;
  kept = std::move(*work.watched_);
  works_.erase(work.watched_);
}

std::vector<c10::intrusive_ptr<CatenaryWork>> Watch::works_of(const Communicator& communicator) {
  std::vector<c10::intrusive_ptr<CatenaryWork>> found;
  const std::lock_guard lock(mutex_);
  for (const c10::intrusive_ptr<CatenaryWork>& work : works_) {
    if (work->communicator() == &communicator) found.push_back(work);
  }
  return found;
}

void Watch::serve() {
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      asleep_ = true;
      changed_.wait(lock, [this] { return !works_.empty(); });
      asleep_ = false;
    }
    std::this_thread::sleep_for(kTick);
    look_through();
  }
}

void Watch::look_through() {
  std::vector<c10::intrusive_ptr<CatenaryWork>> now;
  {
    const std::lock_guard lock(mutex_);
    now.assign(works_.begin(), works_.end());
  }
  const auto time = std::chrono::steady_clock::now();
  for (const c10::intrusive_ptr<CatenaryWork>& work : now) {
    if (work->look()) {
      Settlers::of_process().settle(work);
    } else if (work->deadline() < time) {
      work->expire();
    } else if (work->began() + kLong < time) {
      work->linger();
    }
  }
}

Settlers& Settlers::of_process() {
  static auto* settlers = new Settlers;
  return *settlers;
}

void Settlers::settle(c10::intrusive_ptr<CatenaryWork> work) {
  if (!work->hand_over()) return;
  const std::lock_guard lock(mutex_);
  ready_.push_back(std::move(work));
  if (resting_) return;
  if (idle_ >= ready_.size()) {
    changed_.notify_one();
  } else {
    std::thread([this] { serve(); }).detach();
  }
}

void Settlers::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    ++idle_;
    changed_.wait(lock, [this] { return !ready_.empty() && !resting_; });
    --idle_;
    ++busy_;
    c10::intrusive_ptr<CatenaryWork> work = std::move(ready_.front());
    ready_.pop_front();
    lock.unlock();
    work->settle();
    work.reset();
    lock.lock();
    --busy_;
    if (resting_) rested_.notify_all();
  }
}

void Settlers::rest(std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex_);
  resting_ = true;
  rested_.wait_for(lock, limit, [this] { return busy_ == 0; });
}

}  // namespace catenary_torch
