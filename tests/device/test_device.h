// What a test of devices needs beside its tasks.
#pragma once

#include <chrono>
#include <thread>

#include "src/device/device.h"

namespace catenary::testing {

// A device that no test of this program had before.
inline Device& fresh_device() {
  static int next = 0;
  return Device::get(next++);
}

template <typename Condition>
bool comes_true(Condition condition, std::chrono::milliseconds within = std::chrono::seconds(10)) {
  const auto until = std::chrono::steady_clock::now() + within;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return true;
}

}  // namespace catenary::testing
