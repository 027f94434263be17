// RunPool: group runs between two lives.
//
// They are taken by who issues and come back from who drives, through a ring with one writer on
// each side, so that neither needs a lock or an atomic addition for it. The run that came back last
// is taken first, since it is the one that the caches still hold.
//
// Threads: take() under the communicator's issue lock, give_back() under the device's drive lock.
// Nothing waits. Failure: take() throws std::bad_alloc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "src/base/size_literals.h"
#include "src/device/counter.h"
#include "src/engine/group_run.h"

namespace catenary {

class RunPool {
 public:
  // So many bytes are kept at most, and one run more: a program that enqueues far ahead would pay
  // page faults for each new one, but what it has once had under way is not to stay for good.
  static constexpr std::uint64_t kMostBytes = 4_MB;

  RunPool() { free_.reserve(kRoom); }
  ~RunPool() {
    while (waiting() > 0) fetch_one();
  }
  RunPool(const RunPool&) = delete;
  RunPool& operator=(const RunPool&) = delete;

  std::unique_ptr<GroupRun> take() {
    const std::uint64_t waiting = this->waiting();
    std::unique_ptr<GroupRun> run;
    if (waiting == 1) {
      run = fetch_one();
    } else {
      if (waiting > 0 && free_.size() + waiting <= kRoom) fetch(waiting);
      if (free_.empty()) return std::make_unique<GroupRun>();
      run = std::move(free_.back());
      free_.pop_back();
    }
    count_up(taken_bytes_, run->held_bytes());
    return run;
  }

  void give_back(std::unique_ptr<GroupRun> run) noexcept {
    const std::uint64_t given = given_.load(std::memory_order_relaxed);
    // Acquire: the place that we are about to fill has been read.
    if (given - fetched_.load(std::memory_order_acquire) == kRoom) return;
    if (kept_bytes() >= kMostBytes) return;
    count_up(given_bytes_, run->held_bytes());
    way_back_[given % kRoom] = run.release();
    count_up(given_);
  }

  std::uint64_t kept_bytes() const noexcept {
    const std::uint64_t taken = taken_bytes_.load(std::memory_order_acquire);
    return given_bytes_.load(std::memory_order_acquire) - taken;
  }

 private:
  std::uint64_t waiting() const noexcept {
    return given_.load(std::memory_order_acquire) - fetched_.load(std::memory_order_relaxed);
  }
  std::unique_ptr<GroupRun> fetch_one() noexcept {
    std::unique_ptr<GroupRun> run(way_back_[fetched_.load(std::memory_order_relaxed) % kRoom]);
    count_up(fetched_);
    return run;
  }
  void fetch(std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) free_.push_back(fetch_one());
  }

  // Places on the way back, and again as many in free_.
  static constexpr std::size_t kRoom = 2048;
  // Not written before it is used, as few programs use all of it.
  std::unique_ptr<GroupRun*[]> way_back_ = std::make_unique_for_overwrite<GroupRun*[]>(kRoom);
  Counter given_{0};        // by who drives
  Counter given_bytes_{0};  // likewise
  Counter fetched_{0};      // by who issues
  Counter taken_bytes_{0};  // likewise
  std::vector<std::unique_ptr<GroupRun>> free_;
};

}  // namespace catenary
