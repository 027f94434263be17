#include "src/device/wait_policy.h"

#include "src/base/clock.h"

namespace catenary {

// The best of some samples, since an interrupt may come into any of them.
bool pauses_are_short() noexcept {
  static const bool are_short = [] {
    constexpr int kSamples = 3;
    constexpr int kPauses = 64;
    constexpr std::int64_t kMostNs = 32;  // 24 on a Zen 5, and 45 and more where they are long
    std::int64_t least = kPauses * kMostNs + 1;
    for (int sample = 0; sample < kSamples; ++sample) {
      const std::int64_t begin = now_ns();
      for (int i = 0; i < kPauses; ++i) cpu_pause();
      least = std::min(least, now_ns() - begin);
    }
    return least <= kPauses * kMostNs;
  }();
  return are_short;
}

}  // namespace catenary
