// RunPool: group runs between two lives.
//
// They are taken by who issues and come back from who drives, through a ring with one writer on
// each side, so that neither needs a lock or an atomic addition for it. The run that came back last
// is taken first, since it is the one that the caches still hold.
//
// Threads: take() under the communicator's issue lock, give_back() under the device's drive lock.
// Nothing waits. Failure: take() throws std::bad_alloc.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include "src/device/counter.h"
#include "src/engine/group_run.h"

namespace catenary {

class RunPool {
 public:
  RunPool() { free_.reserve(2 * kRoom); }
  ~RunPool() { fetch(); }
  RunPool(const RunPool&) = delete;
  RunPool& operator=(const RunPool&) = delete;

  std::unique_ptr<GroupRun> take() {
    const std::uint64_t fetched = fetched_.load(std::memory_order_relaxed);
    const std::uint64_t waiting = given_.load(std::memory_order_acquire) - fetched;
    if (waiting == 1) {
      std::unique_ptr<GroupRun> run(way_back_[fetched % kRoom]);
      count_up(fetched_);
      return run;
    }
    if (waiting > 0 && free_.size() < kRoom) fetch();
    if (free_.empty()) return std::make_unique<GroupRun>();
    std::unique_ptr<GroupRun> run = std::move(free_.back());
    free_.pop_back();
    return run;
  }

  void give_back(std::unique_ptr<GroupRun> run) noexcept {
    const std::uint64_t given = given_.load(std::memory_order_relaxed);
    // Acquire: the place that we are about to fill has been read.
    const std::uint64_t waiting = given - fetched_.load(std::memory_order_acquire);
    if (waiting >= (run->held_bytes() <= kLarge ? kRoom : kRoomForLarge)) return;
    way_back_[given % kRoom] = run.release();
    count_up(given_);
  }

 private:
  void fetch() {
    for (std::uint64_t fetched = fetched_.load(std::memory_order_relaxed);
         fetched != given_.load(std::memory_order_acquire); ++fetched) {
      free_.emplace_back(way_back_[fetched % kRoom]);
      count_up(fetched_);
    }
  }

  // As many as programs enqueue ahead that enqueue far ahead: a new one costs page faults. Groups
  // of many messages are large, and fewer of them are kept.
  static constexpr std::size_t kRoom = 1024;
  static constexpr std::size_t kRoomForLarge = 64;
  static constexpr std::size_t kLarge = 8192;  // bytes
  std::array<GroupRun*, kRoom> way_back_{};
  Counter given_{0};    // by who drives
  Counter fetched_{0};  // by who issues
  std::vector<std::unique_ptr<GroupRun>> free_;
};

}  // namespace catenary
