// What a simulated device says of itself. Any thread; nothing waits; nothing fails.
#pragma once

#include <cstddef>

namespace catenary {

struct PciAddress {
  int domain;
  int bus;
  int device;
};

inline constexpr char kDeviceName[] = "Catenary simulated device";

// Made up: different for each device of a process, and always the same for one ordinal.
constexpr PciAddress pci_address(int ordinal) {
  constexpr int kBuses = 255;  // bus 0 is left out, since programs take it for "unknown"
  return {ordinal / kBuses, 1 + ordinal % kBuses, 0};
}

// How many cores, and bytes of memory in all and free now, the devices of this process share.
struct SharedResources {
  int cores;
  std::size_t total_bytes;
  std::size_t free_bytes;
};
SharedResources shared_resources();

}  // namespace catenary
