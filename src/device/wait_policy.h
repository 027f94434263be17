// WaitPolicy: how a thread spends its time while nothing moves.
//
// First it looks again and again, in which most waits end; then with a few pauses, which keep the
// core; then with yields, which lend it; then it sleeps. How many of each follows from how many
// ranks share the cores: with a core per rank a longer look is free, with more ranks than cores
// every pause is stolen from a rank that has work. Any thread; Backoff belongs to one.
#pragma once

#include <algorithm>
#include <cstdint>

namespace catenary {

inline void cpu_pause() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#endif
}

// Whether one takes about as long as a look, as it does on some processors, and several times that
// on others. Where it does, there is one between two looks: who looks all the time takes from its
// peer the very line that this is about to write.
bool pauses_are_short() noexcept;

struct WaitPolicy {
  int looks;
  int pauses;
  int yields;
  bool spreads;  // whether the thread leaves a core that it shares with whom it waits for

  // Just enough to let the others pass by.
  static constexpr WaitPolicy lean() noexcept {
    return {.looks = 1, .pauses = 0, .yields = 50, .spreads = false};
  }
  // With a core per rank, some 1 ms, as long as a peer takes for 10 MB that it was lent: to be
  // woken takes 30 us and more. A look takes 10 to 25 ns, a pause as long or more, and a yield
  // about 0.5 us. Looks and pauses are few even then: the system may have put two ranks on one core
  // while another one idles, and every one of them then keeps away the very rank that is waited
  // for.
  static constexpr WaitPolicy where(bool crowded) noexcept {
    return crowded ? lean()
                   : WaitPolicy{.looks = 128, .pauses = 50, .yields = 2000, .spreads = true};
  }
};

// The state of one wait.
class Backoff {
 public:
  enum class Step { kPause, kYield, kSleep };

  explicit Backoff(WaitPolicy policy) noexcept : policy_(policy) {}

  // What to do next, nothing having moved.
  Step next() noexcept {
    const int round = rounds_;
    if (round < policy_.pauses) return ++rounds_, Step::kPause;
    if (round < policy_.pauses + policy_.yields) return ++rounds_, Step::kYield;
    return Step::kSleep;
  }
  bool spreads() const noexcept { return policy_.spreads; }
  // Something moved: start over.
  void restart() noexcept { rounds_ = sleeps_ = false_alarms_ = 0; }
  // Some descriptors go on telling although nothing moves: then one sleep is without them.
  bool heeds_descriptors() const noexcept { return false_alarms_ < kMostFalseAlarms; }
  // How long to sleep where nothing rings: the longer nothing came, the longer, up to 1.6 ms, so
  // that waiting for a late peer costs little and short waits stay short.
  std::int64_t blind_sleep_ns() const noexcept {
    return kFirstBlindSleep_ns << std::min(sleeps_ / 16, 5);
  }
  // Slept: what woke us may need a moment, but a wait that is long already deserves no second
  // full budget.
  void after_sleep(bool descriptor_told) noexcept {
    ++sleeps_;
    // Unless something moves now.
    false_alarms_ = descriptor_told ? false_alarms_ + 1 : 0;
    rounds_ = policy_.pauses + policy_.yields - std::min(policy_.yields, kYieldsAfterSleep);
  }

 private:
  static constexpr int kYieldsAfterSleep = 2;
  static constexpr int kMostFalseAlarms = 4;
  static constexpr std::int64_t kFirstBlindSleep_ns = 50'000;
  WaitPolicy policy_;
  int rounds_ = 0;
  int sleeps_ = 0;
  int false_alarms_ = 0;
};

}  // namespace catenary
