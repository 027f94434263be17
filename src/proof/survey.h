// Which cases an algorithm is proved in, and the proof of them all.
//
// Up to kEveryRanks ranks: every rank count, root, lane and box, each with buffers cut in several
// ways: none and fewer elements than chunks, parts of unequal length, one pass and several,
// messages of one slice, and as many of them as links of 2, 5 and 16 slots allow. Above: some rank
// counts, roots and boxes, with one to three cuts.
//
// Pairs that run only if they are named are so many that the proof of all that would take too long.
// Each case of theirs has an element a chunk with links of 2 slots and, where steps depend on how
// many messages links hold, of 16; the other cuts take turns, one for each case that has root 0 or
// none. From 512 ranks on they are in about as many boxes as those have ranks, which mostly takes
// the fewest moves; from 2,048 on so are all pairs.
//
// A case in which all ranks do the same as in one that was proved, in other boxes or but for their
// names, is proved with it.
//
// Why that many cuts will do: a step and both ends of a message are about one part of the buffers,
// so under the same steps what happens to an element does not depend on how long its part is, nor
// on the other parts. Only waiting does.
//
// Any thread, each with a Checker of its own; takes as long as it takes, and says how far it is.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "src/collective/algorithms.h"
#include "src/proof/checker.h"
#include "src/proof/proof_case.h"
#include "src/proof/renaming.h"

namespace catenary::proof {

inline constexpr int kEveryRanks = 64;
inline constexpr int kMostRanks = 4096;

// What to prove; all of it where nothing is said.
struct Scope {
  int from_ranks = 1;
  int to_ranks = kMostRanks;
  std::optional<int> root = {};
  std::optional<int> box = {};
  std::optional<std::uint32_t> slots = {};
  std::optional<std::size_t> count = {};
};

struct Proof {
  std::uint64_t cases = 0;   // with all their cuts
  std::uint64_t checks = 0;  // runs of the checker
  std::uint64_t moves = 0;   // slices moved by those
  std::uint64_t loans = 0;   // cases and windows of which all loans were judged
  int every_ranks = 0;       // every rank count of the scope up to here
  int most_ranks = 0;        // the largest
  int scratch_chunks = 0;    // the most that a rank uses, and of how many ranks
  int scratch_ranks = 0;
  std::string fault;  // what is wrong, and in which case; proving ends there
};

// `checker` has memory that is worth keeping from one to the next. `progress` is called now and
// then with the case that comes next.
Proof prove(Checker& checker, const Algorithm& algorithm, const Scope& scope,
            const std::function<void(const ProofCase&)>& progress);

// Whether any rank of an algorithm does otherwise for other boxes. If not, one box proves them all.
bool looks_at_box(const Algorithm& algorithm);

// The ways in which buffers are cut, with any number of ranks.
std::vector<Cut> cuts_for(const Algorithm& algorithm, int ranks, int chunk_count);

// The numbers of ranks that are proved of those in the scope: above kEveryRanks a sample, but that
// one number if there is only one.
std::vector<int> rank_counts(const Scope& scope);

}  // namespace catenary::proof
