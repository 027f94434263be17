#include "src/proof/memory.h"

#include <algorithm>

#include "src/base/error.h"
#include "src/base/rounding.h"

namespace catenary::proof {

void Memory::begin(const ProofCase& which, Orders& orders, std::size_t scratch_elements) {
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
  scratch_ends_.assign(ranks, 0);
  reserve_scratch(scratch_elements);
}

// A rank's is an odd number of cache lines, so that neighbours' begin in different sets of them.
void Memory::reserve_scratch(std::size_t elements) {
  words_each_ = reduces_ ? 2 : 1;
  const std::size_t in_line = 64 / sizeof(std::uint64_t) / words_each_;
  scratch_stride_ = (divide_up(elements, in_line) | 1) * in_line;
  const std::size_t words = scratch_ends_.size() * scratch_stride_ * words_each_;
  const std::size_t bytes = words * sizeof(std::uint64_t);
  if (bytes > scratch_mapping_.bytes()) {
    scratch_mapping_ = {};
    scratch_mapping_ = Mapping::anonymous(bytes);
    prefer_large_pages(scratch_mapping_.data(), bytes);
  }
  scratch_ = reinterpret_cast<std::uint64_t*>(scratch_mapping_.data());
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
