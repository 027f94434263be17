// Doorbell: how one thread tells sleepers, perhaps in another process, that there is work.
//
// A doorbell is a pair of words in memory that both sides can see. Who publishes work rings after
// the publishing store; ringing costs a fence and a load while nobody sleeps. Who wants to sleep
// announces itself, looks for work once more, and only then waits, so no ring is lost:
//
//     sleeper: announce -> look again -> wait          ringer: publish -> ring
//
// Both arrows that begin at a store and end at a look are full fences (fence.h): either the sleeper
// sees the work, or the ringer sees the sleeper.
//
// A fence makes the ringer wait until what it has published has left its core, which takes longer
// than all else about a short message if another core has the line. ring_lightly() makes none, and
// so may miss a sleeper that announces itself just then. But stores leave a core within
// microseconds, whatever it does meanwhile. So who can be rung that way sleeps for no longer than
// kSettled_ns at first, looks once more, still announced, and sees what that ringer has published.
//
// Any thread, any process. `wait_any` waits; nothing else does. Nothing here fails: a wait may end
// early for no reason, and callers look for work again after it.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "src/base/asymmetric_fence.h"
#include "src/base/fence.h"

namespace catenary {

// What lies in memory, zeroed at first; on a line of its own because ringers read it at each ring.
struct alignas(128) DoorbellWords {
  std::atomic<std::uint32_t> epoch{0};
  std::atomic<std::uint32_t> sleepers{0};
};
static_assert(sizeof(DoorbellWords) == 128);

class Doorbell {
 public:
  // `shared`: the words lie in memory that other processes map. `alarm`: an eventfd that is to be
  // written as well, where not below 0.
  Doorbell(DoorbellWords& words, bool shared, const std::atomic<int>* alarm = nullptr) noexcept
      : words_(&words), shared_(shared), alarm_(alarm) {}

  void ring() noexcept {
#if defined(__SANITIZE_THREAD__)
    // GCC's TSan knows no fences; a read-modify-write orders just as well.
    const std::uint32_t sleepers = words_->sleepers.fetch_add(0, std::memory_order_seq_cst);
#else
    std::atomic_thread_fence(std::memory_order_seq_cst);
    const std::uint32_t sleepers = words_->sleepers.load(std::memory_order_relaxed);
#endif
    if (sleepers != 0) wake();
  }
  // The same without a fence.
  void ring_lightly() noexcept {
    light_fence();
    if (words_->sleepers.load(std::memory_order_relaxed) != 0) wake();
  }

  // Announces a sleeper and returns the ticket to wait with. Pair with retract().
  std::uint32_t announce() noexcept {
    words_->sleepers.fetch_add(1, std::memory_order_seq_cst);
    fence_after_rmw();
    return words_->epoch.load(std::memory_order_seq_cst);
  }
  // How long after that a look sees all that was published before it, amply.
  static constexpr std::int64_t kSettled_ns = 100'000;
  void retract() noexcept { words_->sleepers.fetch_sub(1, std::memory_order_relaxed); }

  // A bell that was announced, and the ticket it gave.
  struct Ticket {
    const Doorbell* bell;
    std::uint32_t epoch;
    bool is_rung() const noexcept { return bell->words_->epoch.load() != epoch; }
  };
  // Sleeps until one of the bells rings or `timeout_ns` (< 0: no limit) has passed.
  static void wait_any(std::span<const Ticket> tickets, std::int64_t timeout_ns) noexcept;

 private:
  void wake() noexcept;

  DoorbellWords* words_;
  bool shared_;
  const std::atomic<int>* alarm_;
};

}  // namespace catenary
