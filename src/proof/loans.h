// Proves that what an algorithm may lend in place (src/collective/lending.h) is not written over
// before it is taken: all ranks run, every message carries what its sender knows of everyone's
// progress, and whoever writes over what it has lent must know that the borrower is past the step
// that reads it. So it holds for every order of execution, not only for one.
//
// Pure; nothing waits or fails. The schedules must be proved otherwise: pairing is taken for
// granted.
#pragma once

#include <set>
#include <string>

#include "src/collective/algorithms.h"
#include "src/collective/lending.h"
#include "src/proof/proof_case.h"

namespace catenary::proof {

// What may be lent of a schedule, as lendings() finds it, or what a test makes of that.
using LendingSource =
    std::function<std::vector<Lending>(const Algorithm&, const Place&, const Schedule&)>;

// The first loan that is not safe with one of these windows, in words; empty if all are.
std::string unsafe_loan(const Algorithm& algorithm, const ProofCase& which,
                        const std::set<int>& windows = {1}, const LendingSource& source = lendings);

}  // namespace catenary::proof
