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

// From the beginning of one buffer to that of the other.
inline std::size_t bytes_apart(const void* one, const void* other) {
  const auto first = reinterpret_cast<std::uintptr_t>(one);
  const auto second = reinterpret_cast<std::uintptr_t>(other);
  return first < second ? second - first : first - second;
}

// overlap_of() of buffers that may reach each other.
Overlap overlap_of_neighbours(const OperationRequest& request, int rank, int nranks);

// Mostly without a call: the longer buffer does not reach from one to the other, or they are one.
inline Overlap overlap_of(const OperationRequest& request, int rank, int nranks) {
  if (request.parts == nullptr) {
    const bool has_parts = holds_part_per_rank(request.kind);
    const std::size_t apart = bytes_apart(request.input, request.output);
    const std::size_t parts = has_parts ? static_cast<std::size_t>(nranks) : 1;
    if (apart >= request.count * parts * element_bytes(request.type)) return Overlap::kNone;
    if (apart == 0 && !has_parts) return Overlap::kInPlace;
  }
  return overlap_of_neighbours(request, rank, nranks);
}

// From the first byte to the end of the last part.
std::size_t input_bytes(const OperationRequest& request, int nranks);

// Of the buffers of all ranks, if those of the others are as long as ours and lie alike.
std::size_t touched_bytes(const OperationRequest& request, Overlap overlap, int rank, int nranks);

}  // namespace catenary
