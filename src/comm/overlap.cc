#include "src/comm/overlap.h"

#include <algorithm>
#include <vector>

namespace catenary {
namespace {

const std::byte* bytes_at(const void* base, std::size_t elements, std::size_t element_bytes) {
  return static_cast<const std::byte*>(base) + elements * element_bytes;
}

std::size_t end_of(const std::vector<Range>& parts) {
  std::size_t end = 0;
  for (const Range& part : parts) end = std::max(end, part.offset + part.count);
  return end;
}

// Elements of one part for each rank, or of a single one.
std::size_t elements_of(const OperationRequest& request, bool has_many, int nranks) {
  return has_many ? request.count * static_cast<std::size_t>(nranks) : request.count;
}

std::size_t input_elements(const OperationRequest& request, int nranks) {
  if (request.parts != nullptr) return end_of(request.parts->input);
  const bool has_many = holds_part_per_rank(request.kind) &&
                        request.kind != Collective::kAllGather &&
                        request.kind != Collective::kGather;
  return elements_of(request, has_many, nranks);
}

std::size_t output_elements(const OperationRequest& request, int nranks) {
  if (request.parts != nullptr) return end_of(request.parts->output);
  const bool has_many = holds_part_per_rank(request.kind) &&
                        request.kind != Collective::kReduceScatter &&
                        request.kind != Collective::kScatter;
  return elements_of(request, has_many, nranks);
}

// Of a collective with a root the others look at one buffer only.
bool looks_at_both(const OperationRequest& request, int rank) {
  return !has_root(request.kind) || rank == request.root;
}

bool is_in_place(const OperationRequest& request, int rank) {
  const auto self = static_cast<std::size_t>(rank);
  const std::size_t bytes = element_bytes(request.type);
  const auto part_of = [&](const void* base, const std::vector<Range>& parts) {
    return bytes_at(base, parts[parts.size() > 1 ? self : 0].offset, bytes);
  };
  switch (request.kind) {
    case Collective::kAllGather:
    case Collective::kGather:
      return request.input == bytes_at(request.output, self * request.count, bytes);
    case Collective::kReduceScatter:
    case Collective::kScatter:
      return request.output == bytes_at(request.input, self * request.count, bytes);
    case Collective::kAllGatherV:
    case Collective::kReduceScatterV:
      return part_of(request.input, request.parts->input) ==
             part_of(request.output, request.parts->output);
    default: return request.input == request.output;
  }
}

}  // namespace

std::size_t input_bytes(const OperationRequest& request, int nranks) {
  return input_elements(request, nranks) * element_bytes(request.type);
}

std::size_t touched_bytes(const OperationRequest& request, Overlap overlap, int rank, int nranks) {
  const auto ranks = static_cast<std::size_t>(nranks);
  const std::size_t given = input_bytes(request, nranks);
  const std::size_t got = output_elements(request, nranks) * element_bytes(request.type);
  const bool in_place = overlap == Overlap::kInPlace;
  const bool has_copy = looks_at_both(request, rank) && !in_place;  // a root that broadcasts
  switch (request.kind) {
    case Collective::kBroadcast: return ranks * got + (has_copy ? given : 0);
    case Collective::kReduce: return ranks * given + (in_place ? 0 : got);
    case Collective::kGather: return 2 * got;
    case Collective::kScatter: return 2 * given;
    default: return ranks * (in_place ? std::max(given, got) : given + got);
  }
}

Overlap overlap_of_neighbours(const OperationRequest& request, int rank, int nranks) {
  if (request.input == nullptr || request.output == nullptr) return Overlap::kNone;
  const std::size_t bytes = element_bytes(request.type);
  const std::byte* const input = bytes_at(request.input, 0, bytes);
  const std::byte* const output = bytes_at(request.output, 0, bytes);
  const std::size_t given = input_elements(request, nranks) * bytes;
  const std::size_t got = output_elements(request, nranks) * bytes;
  const bool shares = given > 0 && got > 0 && input < output + got && output < input + given;
  if (!shares) return Overlap::kNone;
  return !looks_at_both(request, rank) || is_in_place(request, rank) ? Overlap::kInPlace
                                                                     : Overlap::kAskew;
}

}  // namespace catenary
