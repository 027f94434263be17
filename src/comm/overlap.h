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

// A cheap answer for most: kNone, since the longer buffer does not reach from one to the other.
inline bool are_far_apart(const OperationRequest& request, int nranks) {
  if (request.parts != nullptr) return false;
  const auto input = reinterpret_cast<std::uintptr_t>(request.input);
  const auto output = reinterpret_cast<std::uintptr_t>(request.output);
  const std::size_t apart = input < output ? output - input : input - output;
  return apart >= request.count * static_cast<std::size_t>(nranks) * element_bytes(request.type);
}

// From the first byte to the end of the last part.
std::size_t input_bytes(const OperationRequest& request, int nranks);

}  // namespace catenary
