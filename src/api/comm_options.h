// Reading ncclConfig_t: structs of older and newer headers, NCCL's rules, and the environment's
// say. Pure but for the log. Failure: kInvalidArgument, as NCCL gives it.
#pragma once

#include "nccl.h"
#include "src/base/config.h"
#include "src/comm/communicator.h"

namespace catenary {

// `given` may be null: defaults. `inherited`: what a split communicator takes from its parent.
CommunicatorOptions parse_options(const ncclConfig_t* given, const Config& config,
                                  const CommunicatorOptions& inherited = {});

}  // namespace catenary
