// Where cards sit: which of a machine's cores each is near to.
//
// Any thread; reads /sys anew at each call. Nothing waits. Nothing fails: a device that the system
// says nothing of is near to no core.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "src/topology/machine.h"

namespace catenary {

struct PciPlace {
  unsigned domain = 0;
  unsigned bus = 0;
  unsigned device = 0;
  unsigned function = 0;
};

// "0000:3b:00.0", as the system and hwloc write it.
std::string text_of(const PciPlace& place);

// The indices of those devices that are near to the most of these cores, in order, and of those
// that are near to almost as many, as for a process that may use most of a machine: all of them
// where nothing tells them apart. `folder` has a folder for each, with the cores that it is near
// to.
std::vector<std::size_t> nearest_devices(std::span<const PciPlace> devices, const CoreGrant& cores,
                                         const std::string& folder = "/sys/bus/pci/devices");

}  // namespace catenary
