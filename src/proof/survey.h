// Which cases an algorithm is proved in, and the proof of them all.
//
// Up to kEveryRanks ranks: every rank count, root, lane and box, each with buffers cut in several
// ways: none and fewer elements than chunks, parts of unequal length, one pass and several,
// messages of one slice and as many as a link's slots allow. Above: some rank counts, roots and
// boxes, with one or two cuts, as far as a case takes no more than kMostMoves. Pairs that run only
// if they are named have one or two of the cuts a case, in turn, and go as far as
// kMostMovesIfNamed: they are so many that the proof of all would take too long otherwise.
//
// A case in which all ranks do the same as in one that was proved, in other boxes or with another
// root and their numbers moved round the circle, is proved with it. (The latter is known by a
// hash.)
//
// Why that many cuts will do: a step and both ends of a message are about one part of the buffers,
// so what happens to an element does not depend on how long its part is, nor on the other parts.
// Only waiting does.
//
// One thread at a time; takes as long as it takes, and says how far it is.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "src/collective/algorithms.h"
#include "src/proof/checker.h"
#include "src/proof/proof_case.h"

namespace catenary {

inline constexpr int kEveryRanks = 64;
inline constexpr int kMostRanks = 4096;
inline constexpr std::uint64_t kMostMoves = 100'000'000;
inline constexpr std::uint64_t kMostMovesIfNamed = 2'000'000;

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

// How buffers are cut for a case's ranks: its `count` and `slots`. Each lane gets its share.
struct Cut {
  std::uint32_t slots = 2;
  std::size_t count = 1;
};
std::vector<Cut> cuts_for(Collective collective, int ranks, int chunk_count, int lanes);

}  // namespace catenary
