// Device: a simulated accelerator. It has memory, streams, an executor that moves communication, a
// compute lane for the user's functions, and a copy lane for large copies.
//
// Ranks are usually given a device each, by thread or by process. Devices are made at first use and
// live until the process ends. Threads: any. Waiting: synchronize() and reset(), which drive.
// Failure: DeviceError for a device that does not exist; Error in the forked child of a process
// that used the library, where no device works.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "src/base/clock.h"
#include "src/base/doorbell.h"
#include "src/device/executor.h"
#include "src/device/lane.h"
#include "src/device/stream.h"

struct CUstream_st;

namespace catenary {

class Device {
 public:
  static Device& get(int ordinal);
  // The calling thread's device.
  static Device& current() { return get(current_ordinal()); }
  static int current_ordinal() noexcept;
  static void set_current(int ordinal);
  // What programs are told. Unless CATENARY_DEVICES says how many there are, more can be had.
  static int count();

  explicit Device(int ordinal);
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  int ordinal() const noexcept { return executor_.ordinal(); }
  Stream& default_stream() noexcept { return default_stream_; }
  // To be kept by who still looks at it: a reset by another thread may end it at once.
  std::shared_ptr<Stream> create_stream(bool non_blocking);
  // Returns at once; what is enqueued is still done. False if there is no such stream.
  static bool destroy_stream(CUstream_st* handle);
  // One without a handle, which nobody else knows and no reset ends, until retire().
  Stream& create_inner_stream();
  // Returns at once; what is enqueued is still done.
  void retire(Stream& stream);

  // Rings when work is enqueued, a lane has finished a job, or a driver leaves. Ring it after
  // making true what a thread in drive_until waits for.
  Doorbell& doorbell() noexcept { return executor_.doorbell(); }
  // To be called before a doorbell that tasks gave out goes away, when these tasks are done and not
  // from within a task: returns when no thread sleeps on it any more. Waits only for threads of
  // this process that sleep, which it wakes.
  void quiesce_doorbells() { executor_.quiesce_doorbells(); }
  void note_ranks(int local_ranks, int cores) { executor_.note_ranks(local_ranks, cores); }

  // Waits for all that is enqueued on any stream now.
  void synchronize();
  // Waits for everything, then frees the device's streams and memory, and forgets its notes.
  void reset();
  // Waits for what the default stream would have to wait for now.
  void wait_for_default_stream();

  // Words that the layer above keeps with the device, and alone knows the meaning of; 0 at first.
  static constexpr std::size_t kNotes = 16;
  std::atomic<std::uint64_t>& note(std::size_t place) noexcept { return notes_[place]; }

  Executor& executor() noexcept { return executor_; }
  Lane& compute_lane() noexcept { return compute_lane_; }
  Lane& copy_lane() noexcept { return copy_lane_; }

  // The handle that stands for the stream at the C boundary; null for the default stream.
  static CUstream_st* handle_of(const Stream& stream) noexcept { return stream.handle_; }

 private:
  friend class RetireTask;
  void keep(std::shared_ptr<Stream> stream);
  std::shared_ptr<Stream> forget(const Stream& stream);

  Executor executor_;
  Stream default_stream_{*this, Stream::Kind::kDefault};
  Lane compute_lane_;
  Lane copy_lane_;
  std::mutex streams_mutex_;
  std::vector<std::shared_ptr<Stream>> streams_;  // all but the default one
  std::array<std::atomic<std::uint64_t>, kNotes> notes_{};
};

// Waits here and drives the device until predicate() holds; false if `wait` ended it before.
template <typename Predicate>
bool drive_until(Device& device, Predicate&& predicate, const Wait& wait = {}) {
  return device.executor().drive_until(Condition(predicate), wait);
}

// Whether a handle of the C boundary is null or CUDA's other name for the default stream.
inline bool is_default_stream(const CUstream_st* handle) noexcept {
  return reinterpret_cast<std::uintptr_t>(handle) <= 1;
}
// The stream that a handle of the C boundary stands for: the default one of `device_for_null` for
// these; for cudaStreamPerThread the calling thread's own one there, which is made when it is first
// asked for and ends with the thread. Null if there is no such stream. Throws as create_stream()
// does. As with CUDA, it is the caller's affair that nobody resets the device meanwhile.
Stream* stream_from_handle(CUstream_st* handle, Device& device_for_null);

}  // namespace catenary
