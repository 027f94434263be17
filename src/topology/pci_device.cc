#include "src/topology/pci_device.h"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <sstream>

#include "src/base/error.h"

namespace catenary {
namespace {

constexpr int kMostCores = 1 << 20;

bool has_core(const CoreGrant& cores, int core) {
  const auto bit = static_cast<std::size_t>(core % CoreGrant::kMaskBits);
  return (cores.allowed[bit / 64] >> (bit % 64) & 1) != 0;
}

// How many of the cores are in a list such as "0-3,8,10-11".
int count_in(const std::string& list, const CoreGrant& cores) {
  int count = 0;
  std::istringstream runs(list);
  for (std::string run; std::getline(runs, run, ',');) {
    std::istringstream text(run);
    int first = 0;
    if (!(text >> first) || first < 0 || first > kMostCores) continue;
    int last = first;
    if (text.peek() == '-') text.ignore() >> last;
    // Names of more cores than a mask holds would count some of them twice.
    last = std::min(last, first + CoreGrant::kMaskBits - 1);
    for (int core = first; core <= last; ++core) count += has_core(cores, core) ? 1 : 0;
  }
  return count;
}

}  // namespace

std::string text_of(const PciPlace& place) {
  return format("%04x:%02x:%02x.%x", place.domain, place.bus, place.device, place.function);
}

std::vector<std::size_t> nearest_devices(std::span<const PciPlace> devices, const CoreGrant& cores,
                                         const std::string& folder) {
  std::vector<std::size_t> nearest;
  int most = 0;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    std::string list;
    std::getline(std::ifstream(folder + "/" + text_of(devices[i]) + "/local_cpulist"), list);
    const int near = count_in(list, cores);
    if (near > most) nearest.clear();
    most = std::max(most, near);
    if (near == most) nearest.push_back(i);
  }
  return nearest;
}

}  // namespace catenary
