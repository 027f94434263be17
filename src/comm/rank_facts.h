// What ranks tell each other about themselves while a communicator is made, so that all of them
// choose alike afterwards: machines, links, and how messages are cut.
//
// Threads: the one that joins. Waiting: until all ranks have told. Failure: throws Error, as for
// ranks whose settings would cut messages differently.
#pragma once

#include "src/base/config.h"
#include "src/bootstrap/membership.h"
#include "src/collective/cost.h"
#include "src/topology/machine.h"
#include "src/transport/link_table.h"

namespace catenary {

struct AgreedFacts {
  MachineFacts machine;
  Crowd crowd;                // of this very machine
  CostParameters parameters;  // rank 0's
};

// `links`: what ours can carry, which must be the same everywhere.
AgreedFacts agree_on_facts(Membership& membership, const LinkTable& table, const Cut& links,
                           const Config& config, const Wait& wait);

}  // namespace catenary
