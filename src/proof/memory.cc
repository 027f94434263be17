#include "src/proof/memory.h"

#include <algorithm>

#include "src/base/error.h"

namespace catenary::proof {

void Memory::begin(const ProofCase& which, Orders& orders) {
  which_ = which;
  orders_ = &orders;
  const bool exchanges = which.collective == Collective::kAllToAll;
  reduces_ = reduces(which.collective);
  in_place_ = !is_point_to_point(which.collective);
  gathered_ = gathers(which.collective) || exchanges;
  scattered_ = scatters(which.collective) || exchanges;
  given_a_rank_ = scattered_ ? which.count : 0;
  got_a_rank_ = gathered_ ? which.count : 0;
  outputs_ = output_elements(which);
  fingerprints_.make(which.ranks, std::max(input_elements(which), outputs_));
  const auto ranks = static_cast<std::size_t>(which.ranks);
  bits_.assign(ranks * outputs_ / 64 + 1, 0);
  written_.assign(ranks, 0);
  if (scratch_.size() < ranks) scratch_.resize(ranks);
}

bool Memory::refuse(std::size_t element, const char* how) {
  refusal_ = format("writes output[%zu] %s", element, how);
  return false;
}

bool Memory::refuse_value(int rank, int chunk, std::size_t element, const Fingerprint& value) {
  const std::size_t source = source_element(rank, chunk, element);
  const std::string belongs = reduces_ && which_.ranks > 1
                                  ? format("the finished reduction of element %zu", source)
                                  : format("rank %d's element %zu",
                                           reduces_    ? 0
                                           : gathered_ ? chunk
                                                       : which_.root,
                                           source);
  refusal_ =
      format("writes %s to output[%zu], where %s belongs",
             fingerprints_.text(value, which_.ranks, source).c_str(), element, belongs.c_str());
  return false;
}

}  // namespace catenary::proof
