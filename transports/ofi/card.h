// Which of a host's cards: the one that is nearest to this process's cores; where several are as
// near, processes take turns, since one for all would be a fraction of what the host has. Those
// that are bound to cores of their own do by their cores, others by their ranks.
//
// Any thread; nothing waits or fails.
#pragma once

#include <string>

#include "src/topology/machine.h"
#include "transports/ofi/library.h"

namespace catenary::ofi {

// Who chooses.
struct Seat {
  int rank = 0;
  CoreGrant cores = core_grant();
  int machine_cores = catenary::machine_cores();
};

struct Card {
  const fi_info* info;  // of the list
  std::string about;    // for the log; empty if there is only one
};

// Of a list that is all of one provider, best first: of each card what comes first in it. `folder`:
// what the system tells of PCI devices.
Card choose_card(const fi_info& list, const Seat& seat,
                 const std::string& folder = "/sys/bus/pci/devices");

}  // namespace catenary::ofi
