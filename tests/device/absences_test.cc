#include "src/device/absences.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "src/base/clock.h"

namespace catenary {
namespace {

constexpr int kSoManyCount = 8;

void compute_us(std::int64_t us) {
  const std::int64_t end = now_ns() + us * 1000;
  while (now_ns() < end) {
  }
}

void sleep_us(std::int64_t us) { std::this_thread::sleep_for(std::chrono::microseconds(us)); }

void go_away(Absences& absences, int times, void (*spend_us)(std::int64_t)) {
  for (int i = 0; i < times; ++i) {
    absences.begin();
    spend_us(1000);
    absences.end();
  }
}

void come_right_back(Absences& absences, int times) {
  for (int i = 0; i < times; ++i) {
    absences.begin();
    absences.end();
  }
}

TEST(Absences, are_not_expected_of_who_has_not_called) {
  Absences absences;
  absences.end();
  EXPECT_FALSE(absences.are_usual());
}

TEST(Absences, are_of_who_computes) {
  Absences absences;
  go_away(absences, kSoManyCount, compute_us);
  EXPECT_TRUE(absences.are_usual());
}

TEST(Absences, are_of_who_sleeps) {
  Absences absences;
  go_away(absences, kSoManyCount, sleep_us);
  EXPECT_TRUE(absences.are_usual());
}

TEST(Absences, are_not_of_who_comes_right_back) {
  Absences absences;
  come_right_back(absences, 100);
  EXPECT_FALSE(absences.are_usual());
}

TEST(Absences, are_forgotten) {
  Absences absences;
  go_away(absences, kSoManyCount, sleep_us);
  come_right_back(absences, 2 * kSoManyCount);
  EXPECT_FALSE(absences.are_usual());
}

TEST(Absences, count_from_the_second_on) {
  Absences absences;
  go_away(absences, 1, sleep_us);
  EXPECT_FALSE(absences.are_usual()) << "it was not looked at closely";
  go_away(absences, 1, sleep_us);
  EXPECT_TRUE(absences.are_usual());
  come_right_back(absences, kSoManyCount - 1);
  EXPECT_TRUE(absences.are_usual());
  come_right_back(absences, 1);
  EXPECT_FALSE(absences.are_usual());
}

// What a caller does for us meanwhile takes as long as it takes.
TEST(Absences, are_without_what_is_done_here) {
  Absences absences;
  for (int i = 0; i < kSoManyCount; ++i) {
    absences.begin();
    for (int k = 0; k < 3; ++k) {
      compute_us(500);
      absences.go_on();
    }
    absences.end();
  }
  EXPECT_FALSE(absences.are_usual());
}

TEST(Absences, are_not_where_another_thread_waits) {
  Absences absences;
  for (int i = 0; i < kSoManyCount; ++i) {
    absences.begin();
    sleep_us(1000);
    std::thread([&] { absences.end(); }).join();
  }
  EXPECT_FALSE(absences.are_usual());
}

// Several come one after the other to who waits for them all.
TEST(Absences, end_once) {
  Absences absences;
  absences.begin();
  sleep_us(1000);
  for (int i = 0; i < kSoManyCount; ++i) absences.end();
  EXPECT_FALSE(absences.are_usual());
}

}  // namespace
}  // namespace catenary
