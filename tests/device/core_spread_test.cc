#include "src/device/core_spread.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <thread>

namespace catenary {
namespace {

constexpr std::int64_t kLong_ns = 5'000;
constexpr std::int64_t kShort_ns = 300;
constexpr std::int64_t kSlice_ns = 4'000'000;
constexpr int kMany = 100;  // enough for one move
constexpr std::int64_t kSecond_ns = 1'000'000'000;

cpu_set_t allowed_cores() {
  cpu_set_t cores;
  EXPECT_EQ(sched_getaffinity(0, sizeof cores, &cores), 0);
  return cores;
}

// Whether a thread that yields `times`, each for so long, is on another core after one of them.
bool moves(CoreSpread& spread, int times, std::int64_t yield_ns, std::int64_t begin_ns) {
  bool moved = false;
  for (int i = 0; i < times; ++i) {
    const int before = sched_getcpu();
    const std::int64_t at = begin_ns + i * yield_ns;
    spread.yielded(at, at + yield_ns);
    moved = moved || sched_getcpu() != before;
  }
  return moved;
}

// The system may move a thread back at once, or move it by itself, so one try proves nothing.
int moves_of_ten(int times, std::int64_t yield_ns) {
  CoreSpread spread;
  int moved = 0;
  for (int i = 1; i <= 10; ++i)
    moved += moves(spread, times, yield_ns, 10 * i * kSecond_ns) ? 1 : 0;
  return moved;
}

TEST(CoreSpread, LeavesTheCoreThatItSharesAndMayUseAllItMightBefore) {
  const cpu_set_t before = allowed_cores();
  const int least = CPU_COUNT(&before) > 1 ? 5 : 0;
  EXPECT_GE(moves_of_ten(kMany, kLong_ns), least);
  const cpu_set_t after = allowed_cores();
  EXPECT_TRUE(CPU_EQUAL(&before, &after));
}

TEST(CoreSpread, StaysAfterFewYieldsOrShortOnes) {
  EXPECT_LE(moves_of_ten(3, kLong_ns), 3);
  EXPECT_LE(moves_of_ten(kMany, kShort_ns), 3);
}

// Another program takes so many slices right after a move: how many of ten tries in the next 300 ms
// move the thread again.
int moves_of_ten_after(int lost_slices) {
  CoreSpread spread;
  std::int64_t begin_ns = kSecond_ns;
  // A coin decides, and it is a function of the time.
  for (int i = 0; i < 50 && !moves(spread, kMany, kLong_ns, begin_ns); ++i) begin_ns += kSecond_ns;
  moves(spread, lost_slices, kSlice_ns, begin_ns + kMany * kLong_ns);
  int moved = 0;
  for (int i = 1; i <= 10; ++i)
    moved += moves(spread, kMany, kLong_ns, begin_ns + i * 30'000'000) ? 1 : 0;
  return moved;
}

TEST(CoreSpread, StaysWhereItIsOnceAMoveHasLedToABusyCore) { EXPECT_LE(moves_of_ten_after(3), 3); }

// One slice is what a niced program takes now and then.
TEST(CoreSpread, MovesAgainAfterALostSlice) {
  const cpu_set_t cores = allowed_cores();
  EXPECT_GE(moves_of_ten_after(1), CPU_COUNT(&cores) > 1 ? 5 : 0);
}

TEST(CoreSpread, StaysOnTheOnlyCoreItHas) {
  std::thread([] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<unsigned>(sched_getcpu()), &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    EXPECT_EQ(moves_of_ten(kMany, kLong_ns), 0);
    const cpu_set_t after = allowed_cores();
    EXPECT_TRUE(CPU_EQUAL(&one, &after));
  }).join();
}

}  // namespace
}  // namespace catenary
