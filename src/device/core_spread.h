// CoreSpread: gets a waiting thread away from a core that it shares with whom it waits for.
//
// The system may put two ranks on one core while another core has less to do, and keeps them there:
// they yield to each other every microsecond, so that each always looks too recent a guest to be
// moved. A yield that lasts as long as a switch to somebody else and back tells; when many of them
// follow each other, the thread moves to another of its cores, and may then run wherever it might
// before. With a core per rank and one other program that computes, an all-reduce of 8 bytes took 6
// us and takes 1.
//
// One thread at a time. Nothing waits, but a move takes some 20 us, so the pause until the next one
// grows to some milliseconds. It must not grow further: each time that a rank had to wait for long
// and slept, the system may put both together again, and so a few moves after a sleep need no
// pause. Both find out at the same time; a coin says who moves.
//
// A program of equal right on the other core takes a slice of milliseconds whenever the thread
// yields there, and sharing with whom one waits for was better. Who lost 8 ms of slices right after
// a move stays where it is for long. Beside a busy loop 8 bytes took 18 us in the mean, and take 5.
//
// Nothing fails: a thread that is bound to one core stays.
#pragma once

#include <cstdint>

namespace catenary {

class CoreSpread {
 public:
  // The thread has yielded from `before_ns` to `after_ns`.
  void yielded(std::int64_t before_ns, std::int64_t after_ns) noexcept {
    const std::int64_t took_ns = after_ns - before_ns;
    if (took_ns < kSwitch_ns) {
      in_a_row_ = 0;
    } else if (took_ns > kSlice_ns) {
      in_a_row_ = 0;
      slice_lost(took_ns, after_ns);
    } else if (++in_a_row_ >= kManySwitches) {
      in_a_row_ = 0;
      move_if_due(after_ns);
    }
  }

 private:
  static constexpr std::int64_t kSwitch_ns = 700;  // an empty yield takes some 400
  static constexpr std::int64_t kSlice_ns = 1'000'000;
  static constexpr int kManySwitches = 20;

  void slice_lost(std::int64_t lost_ns, std::int64_t now) noexcept;
  void move_if_due(std::int64_t now) noexcept;

  // Zero at first and few, since a library has little thread-local memory.
  std::int64_t moved_ns_ = 0;
  std::int32_t pause_ns_ = 0;  // until the next move may be
  std::int32_t in_a_row_ = 0;
  std::int32_t lost_us_ = 0;  // to other programs, since the move
  std::int32_t sleeps_ = 0;   // of the thread, until the last look
  std::int32_t soon_ = 0;     // moves that need not wait for the pause
};

}  // namespace catenary
