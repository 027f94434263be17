// Absences: whether those who enqueue something long go away after it.
//
// Who enqueues does at once what can be done without waiting, which is quickest if he then waits;
// of something long that may be all of it. If he computes or sleeps instead, it had better be done
// by the driver thread meanwhile. What callers did after the last long tasks tells: an absence is
// time in which the thread used a core, or slept, and not that in which others had its core, or in
// which it did something for us. One of the last eight is enough.
//
// Threads: any; where one enqueues and another one waits, nobody is away. Nothing waits. The clock
// is read around long tasks only, and what the system knows of the thread, some 0.5 us, only when
// the last time was long, whatever it was. Nothing fails.
#pragma once

#include <atomic>
#include <cstdint>

namespace catenary {

class Absences {
 public:
  // The caller has enqueued something long, and goes on.
  void begin() noexcept;
  // A caller enqueues something long again, or waits, or asks whether he would have to. A load, if
  // none was away.
  void end() noexcept {
    if (left_ns_.load(std::memory_order_relaxed) != 0) count();
  }
  // A caller has enqueued something short, as a mark that is put behind the long task before he
  // goes, which may have taken us long: only what follows counts.
  void go_on() noexcept {
    if (left_ns_.load(std::memory_order_relaxed) != 0) begin();
  }
  // What is long had better be done by the driver thread.
  bool are_usual() const noexcept {
    return (recent_.load(std::memory_order_relaxed) & kLastOnes) != 0;
  }

 private:
  static constexpr std::uint32_t kLastOnes = 0xff;

  void count() noexcept;
  bool was_absent() const noexcept;

  std::atomic<std::int64_t> left_ns_{0};  // 0: nobody did
  std::atomic<bool> looks_closer_{false};
  std::atomic<const void*> thread_{nullptr};  // that left, if looking closer
  std::atomic<std::int64_t> core_ns_{0};      // its numbers then
  std::atomic<std::int64_t> sleeps_{0};
  std::atomic<std::uint32_t> recent_{0};  // a bit for each, the last one lowest
};

}  // namespace catenary
