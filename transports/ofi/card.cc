#include "transports/ofi/card.h"

#include <algorithm>
#include <vector>

#include "src/base/error.h"
#include "src/topology/pci_device.h"
#include "src/transport/put_port.h"

namespace catenary::ofi {
namespace {

std::string text_or_none(const char* text) { return text != nullptr ? text : ""; }
std::string name_of(const fi_info& info) { return text_or_none(info.domain_attr->name); }
std::string fabric_of(const fi_info& info) { return text_or_none(info.fabric_attr->name); }

std::vector<const fi_info*> cards_in(const fi_info& list) {
  // EFA's provider lists two networks from 2.1 on, "direct" first. They do not reach each other,
  // and hosts with an older libfabric have the other one only.
  const fi_info* first = &list;
  while (first != nullptr && is_efa_direct(*first)) first = first->next;
  if (first == nullptr) first = &list;
  std::vector<const fi_info*> cards;
  for (const fi_info* info = first; info != nullptr; info = info->next) {
    // Others may not reach what peers take.
    if (info->addr_format != first->addr_format || fabric_of(*info) != fabric_of(*first)) continue;
    const auto is_known = [info](const fi_info* card) { return name_of(*card) == name_of(*info); };
    if (std::ranges::none_of(cards, is_known)) cards.push_back(info);
  }
  return cards;
}

// One that does not say where it is counts as a device that there is not.
PciPlace place_of(const fi_info& info) {
  const bool says = info.nic != nullptr && info.nic->bus_attr != nullptr &&
                    info.nic->bus_attr->bus_type == FI_BUS_PCI;
  if (!says) return {.domain = UINT16_MAX + 1};
  const fi_pci_attr& pci = info.nic->bus_attr->attr.pci;
  return {pci.domain_id, pci.bus_id, pci.device_id, pci.function_id};
}

// Who is bound to a part of the machine's cores takes the turn of that part.
std::size_t turn_of(const Seat& seat) {
  int count = 0;
  int first = 0;
  for (int core = CoreGrant::kMaskBits - 1; core >= 0; --core) {
    if (!seat.cores.has(core)) continue;
    ++count;
    first = core;
  }
  const bool is_bound = count > 0 && 2 * count <= seat.machine_cores;
  return static_cast<std::size_t>(is_bound ? first / count : seat.here.place);
}

// So many cards for each rank of the host, as far as they are near to this one.
std::size_t share_of(std::size_t cards, std::size_t nearest, const Seat& seat) {
  const std::size_t each = cards / static_cast<std::size_t>(std::max(seat.here.ranks, 1));
  const std::size_t most = std::min(nearest, static_cast<std::size_t>(kMostRails));
  return std::clamp(each, std::size_t{1}, most);
}

}  // namespace

bool is_efa_direct(const fi_info& info) { return fabric_of(info) == "efa-direct"; }

Cards choose_cards(const fi_info& list, const Seat& seat, std::size_t rails,
                   const std::string& folder) {
  const std::vector<const fi_info*> cards = cards_in(list);
  std::vector<PciPlace> places;
  for (const fi_info* card : cards) places.push_back(place_of(*card));
  const std::vector<std::size_t> nearest = nearest_devices(places, seat.cores, folder);
  if (rails == 0) rails = share_of(cards.size(), nearest.size(), seat);
  Cards chosen;
  std::string names;
  for (std::size_t rail = 0; rail < rails; ++rail) {
    const std::size_t turn = turn_of(seat) * rails + rail;
    chosen.rails.push_back(cards[nearest[turn % nearest.size()]]);
    names += (names.empty() ? " " : ", ") + name_of(*chosen.rails.back());
  }
  if (cards.size() == 1) return chosen;
  const char* const how = nearest.size() <= rails ? "the nearest" : "in its turn among the nearest";
  chosen.about =
      format("card%s%s, %s of %zu", rails == 1 ? "" : "s", names.c_str(), how, cards.size());
  return chosen;
}

}  // namespace catenary::ofi
