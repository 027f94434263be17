#include "transports/ofi/card.h"

#include <algorithm>
#include <vector>

#include "src/base/error.h"
#include "src/topology/pci_device.h"

namespace catenary::ofi {
namespace {

std::string text_or_none(const char* text) { return text != nullptr ? text : ""; }
std::string name_of(const fi_info& info) { return text_or_none(info.domain_attr->name); }
std::string fabric_of(const fi_info& info) { return text_or_none(info.fabric_attr->name); }

std::vector<const fi_info*> cards_in(const fi_info& list) {
  std::vector<const fi_info*> cards;
  for (const fi_info* info = &list; info != nullptr; info = info->next) {
    // Others may not reach what peers take.
    if (info->addr_format != list.addr_format || fabric_of(*info) != fabric_of(list)) continue;
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
  return static_cast<std::size_t>(is_bound ? first / count : seat.rank);
}

}  // namespace

Card choose_card(const fi_info& list, const Seat& seat, const std::string& folder) {
  const std::vector<const fi_info*> cards = cards_in(list);
  if (cards.size() == 1) return {cards.front(), ""};
  std::vector<PciPlace> places;
  for (const fi_info* card : cards) places.push_back(place_of(*card));
  const std::vector<std::size_t> nearest = nearest_devices(places, seat.cores, folder);
  const fi_info* const card = cards[nearest[turn_of(seat) % nearest.size()]];
  const char* const how = nearest.size() == 1 ? "the nearest" : "in its turn among the nearest";
  return {card, format("card %s, %s of %zu", name_of(*card).c_str(), how, cards.size())};
}

}  // namespace catenary::ofi
