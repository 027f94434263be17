// Time: a monotonic clock in nanoseconds, deadlines, and what every waiting call must heed.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>

namespace catenary {

inline std::int64_t now_ns() noexcept {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// A point in time after which a wait gives up.
class Deadline {
 public:
  static Deadline never() { return Deadline(INT64_MAX); }
  static Deadline after_ms(std::int64_t ms) { return Deadline(now_ns() + ms * 1'000'000); }

  bool passed() const noexcept { return at_ns_ != INT64_MAX && now_ns() >= at_ns_; }
  // What is left, never negative, at most `most_ms`: fit for poll(2).
  int remaining_ms(int most_ms) const noexcept {
    if (at_ns_ == INT64_MAX) return most_ms;
    const std::int64_t left = (at_ns_ - now_ns() + 999'999) / 1'000'000;
    return left <= 0 ? 0 : left < most_ms ? static_cast<int>(left) : most_ms;
  }

 private:
  explicit Deadline(std::int64_t at_ns) : at_ns_(at_ns) {}
  std::int64_t at_ns_;
};

// Passed to every call of the control plane that may wait: until when, and the flag that ends it
// early (abort from another thread). A wait looks at the flag at least every 50 ms.
struct Wait {
  Deadline deadline = Deadline::never();
  const std::atomic<bool>* cancelled = nullptr;
  // Whether what is waited for can no longer come, because of something that the wait itself does
  // not see. Ends it like the flag.
  const std::function<bool()>* pointless = nullptr;
  bool is_cancelled() const {
    if (cancelled != nullptr && cancelled->load(std::memory_order_acquire)) return true;
    return pointless != nullptr && (*pointless)();
  }
};

}  // namespace catenary
