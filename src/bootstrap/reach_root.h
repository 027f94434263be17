// How a member gets its control connection: tries until the root is there and has proven itself.
//
// Waits, until the deadline at most. For rank 0 of a fixed address (NCCL_COMM_ID) it starts the
// root service, or finds the one of another process of the job. Throws Error: kSystem if the root
// cannot be reached, kRemote if it keeps refusing us or cannot prove itself, kInvalidUsage when
// cancelled.
#pragma once

#include "src/base/clock.h"
#include "src/base/config.h"
#include "src/bootstrap/channel.h"
#include "src/bootstrap/unique_id.h"

namespace catenary {

ControlChannel reach_root(const Rendezvous& rendezvous, int rank, const Wait& wait,
                          const Config& config);

}  // namespace catenary
