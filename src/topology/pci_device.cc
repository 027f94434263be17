#include "src/topology/pci_device.h"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <sstream>

#include "src/base/error.h"

namespace catenary {
namespace {

constexpr int kMostCores = 1 << 20;

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
    for (int core = first; core <= last; ++core) count += cores.has(core) ? 1 : 0;
  }
  return count;
}

}  // namespace

std::string text_of(const PciPlace& place) {
  return format("%04x:%02x:%02x.%x", place.domain, place.bus, place.device, place.function);
}

std::vector<std::size_t> nearest_devices(std::span<const PciPlace> devices, const CoreGrant& cores,
                                         const std::string& folder) {
  std::vector<int> near;  // so many of the cores, by device
  for (const PciPlace& device : devices) {
    std::string list;
    std::getline(std::ifstream(folder + "/" + text_of(device) + "/local_cpulist"), list);
    near.push_back(count_in(list, cores));
  }
  const int most = near.empty() ? 0 : std::ranges::max(near);
  std::vector<std::size_t> nearest;
  for (std::size_t i = 0; i < near.size(); ++i) {
    if (4 * near[i] >= 3 * most) nearest.push_back(i);
  }
  return nearest;
}

}  // namespace catenary
