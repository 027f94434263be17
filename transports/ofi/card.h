// Which of a host's cards: those that are nearest to this process's cores. Where there are more
// than ranks, each takes several; else ranks take turns, since one for all would be a fraction of
// what the host has. Those that are bound to cores of their own do by their cores, others by their
// place among the ranks of the host.
//
// Any thread; nothing waits or fails.
#pragma once

#include <string>
#include <vector>

#include "src/topology/machine.h"
#include "src/transport/transport.h"
#include "transports/ofi/library.h"

namespace catenary::ofi {

// Who chooses.
struct Seat {
  Neighbours here = {};
  CoreGrant cores = core_grant();
  int machine_cores = catenary::machine_cores();
};

// Of EFA's two networks the one that not all hosts have.
bool is_efa_direct(const fi_info& info);

struct Cards {
  std::vector<const fi_info*> rails;  // of the list; a card may come again
  std::string about;                  // for the log; empty if there is only one
};

// Of a list that is all of one provider, best first: of each card what comes first in it. `folder`:
// what the system tells of PCI devices. `rails`: how many, 0: this rank's share.
Cards choose_cards(const fi_info& list, const Seat& seat, std::size_t rails,
                   const std::string& folder = "/sys/bus/pci/devices");

}  // namespace catenary::ofi
