// Recipe: how a collective was cut into runs the last time, so that one like it need not be cut
// again. A value that points to what lives as long as its communicator; under the issue lock.
#pragma once

#include <array>

#include "src/comm/operation_request.h"
#include "src/comm/overlap.h"
#include "src/engine/group_run.h"
#include "src/engine/short_step.h"
#include "src/transport/transport.h"

namespace catenary {

struct Recipe {
  // Whether the runs of `request` would differ from these in buffers and sequence only.
  bool fits(const OperationRequest& request) const {
    return repeatable && request.count == count && request.type == type && request.root == root &&
           request.reduction.name == reduction && request.mark == mark;
  }

  // False: nothing yet, or it has what operations that look alike may not have in common: the
  // lengths of parts, or the user's factor.
  bool repeatable = false;
  DataType type = DataType::kInt8;
  Reduction reduction = Reduction::kNone;
  int root = 0;
  std::uint32_t mark = 0;
  std::size_t count = 0;
  int lanes = 0;
  bool may_lend = false;
  Overlap overlap = Overlap::kNone;
  const SendLink* opens_on = nullptr;  // what a short one is sent on first of all
  std::array<RunSpec, kMostLanes> specs;
  ShortStep short_step;  // if that is all
};

}  // namespace catenary
