// Whether two cases are one but for the numbers of their ranks: then the proof of one is word for
// word that of the other.
//
// Ranks are numbered anew in the order in which they turn up when one goes from the root to whom it
// deals with, step by step, then to whom the first of those deals with, and so on. If all steps are
// the same under those numbers, the ranks of one case can be renamed into those of the other. A
// hash tells, so it is wrong by an accident of about one in 2^64.
//
// Pure; nothing waits or fails.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "src/proof/proof_case.h"

namespace catenary::proof {

// How buffers are cut for a case's ranks: its `count` and `slots`. Each lane gets its share.
struct Cut {
  std::uint32_t slots = 2;
  std::size_t count = 1;
};

// All that an algorithm's steps see of the cuts: the windows that they make.
std::set<int> windows_of(const Algorithm& algorithm, ProofCase which, const std::vector<Cut>& cuts);

// Equal for cases that are one, under all of these cuts, but for names. Of collectives with a root
// in which no rank has a part of its own, which would have to be renamed as well. None if a step
// deals with a rank that there is not, or if there is no end of steps: such a case has no other
// name.
std::optional<std::uint64_t> hash_but_for_names(const Algorithm& algorithm, ProofCase which,
                                                const std::vector<Cut>& cuts);

}  // namespace catenary::proof
