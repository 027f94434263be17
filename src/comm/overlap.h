// How the input of a collective lies to its output, if they share memory.
//
// Values; nothing waits or fails.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/comm/operation_request.h"

namespace catenary {

enum class Overlap : std::uint8_t {
  kNone,
  kInPlace,  // in a layout that NCCL documents for it, or only one of them is looked at
  // In another one. Schedules would write over input that is yet to be read, so it is copied first.
  // NCCL's rings happen to survive some of these, such as an AllGather from the beginning of its
  // own output on every rank, and there are programs that count on it.
  kAskew,
};

Overlap overlap_of(const OperationRequest& request, int rank, int nranks);

// From the first byte to the end of the last part.
std::size_t input_bytes(const OperationRequest& request, int nranks);

}  // namespace catenary
