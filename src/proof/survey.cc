#include "src/proof/survey.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "src/base/error.h"
#include "src/proof/fingerprint.h"
#include "src/proof/loans.h"

namespace catenary {
namespace {

using fingerprint_detail::ordered;

// Around powers of two, round numbers, primes.
constexpr int kSampledRanks[] = {65, 96, 100, 127, 128, 257, 512, 1000, 2048, 4096};
// From here on one root, box and cut more would cost seconds.
constexpr int kManyRanks = 512;

std::vector<int> rank_counts(const Scope& scope) {
  std::vector<int> counts;
  for (int ranks = scope.from_ranks; ranks <= std::min(scope.to_ranks, kEveryRanks); ++ranks) {
    counts.push_back(ranks);
  }
  for (const int ranks : kSampledRanks) {
    if (ranks >= scope.from_ranks && ranks <= scope.to_ranks) counts.push_back(ranks);
  }
  // Whoever asks for one number gets it.
  if (counts.empty() && scope.from_ranks == scope.to_ranks) counts.push_back(scope.to_ranks);
  return counts;
}

std::vector<int> unique(std::vector<int> numbers) {
  std::ranges::sort(numbers);
  numbers.erase(std::ranges::unique(numbers).begin(), numbers.end());
  return numbers;
}

std::vector<int> roots_for(Collective collective, int ranks, const Scope& scope) {
  if (!has_root(collective)) return {0};
  if (scope.root) return *scope.root < ranks ? std::vector<int>{*scope.root} : std::vector<int>{};
  if (ranks > kEveryRanks) return unique({0, 1, ranks / 2, ranks - 1});
  std::vector<int> roots;
  for (int root = 0; root < ranks; ++root) roots.push_back(root);
  return roots;
}

// Itself, a neighbour, and the farthest.
std::vector<int> receivers_for(Collective collective, int ranks, int sender) {
  if (!is_point_to_point(collective)) return {0};
  return unique({sender, (sender + 1) % ranks, (sender + ranks / 2) % ranks});
}

int largest_divisor(int ranks, int limit) {
  int divisor = std::min(ranks, limit);
  while (ranks % divisor != 0) --divisor;
  return divisor;
}

std::vector<int> boxes_for(int ranks, bool box_matters, const Scope& scope) {
  if (scope.box) return ranks % *scope.box == 0 ? std::vector<int>{*scope.box} : std::vector<int>{};
  std::vector<int> boxes;
  if (ranks > kEveryRanks) {
    if (!box_matters) return {1};
    if (ranks >= kManyRanks) return {largest_divisor(ranks, 8)};
    return unique({1, largest_divisor(ranks, 8), largest_divisor(ranks, ranks / 2)});
  }
  for (int box = 1; box <= ranks; ++box) {
    if (ranks % box == 0) boxes.push_back(box);
  }
  return boxes;
}

bool same_steps(Steps ones, Steps others) {
  for (;;) {
    const Step* one = ones.next();
    const Step* other = others.next();
    if (one == nullptr || other == nullptr) return one == other;
    if (*one != *other) return false;
  }
}

std::vector<Cut> cuts_of(const Algorithm& algorithm, const ProofCase& which) {
  return cuts_for(which.collective, which.ranks, algorithm.chunks(place_of(which, 0)),
                  algorithm.lanes);
}

// Whether all ranks do the same in both.
bool same_schedules(const Algorithm& algorithm, ProofCase one, ProofCase other,
                    std::vector<Cut> cuts) {
  if (algorithm.chunks(place_of(one, 0)) != algorithm.chunks(place_of(other, 0))) return false;
  if (!algorithm.sends_ahead) cuts.resize(1);  // they make no difference
  for (const Cut& cut : cuts) {
    one.slots = other.slots = cut.slots;
    one.count = other.count = cut.count;
    const StepSource ones = source_of(algorithm, one);
    const StepSource others = source_of(algorithm, other);
    for (int rank = 0; rank < one.ranks; ++rank) {
      if (!same_steps(ones.steps(place_of(one, rank)), others.steps(place_of(other, rank)))) {
        return false;
      }
    }
  }
  return true;
}

std::uint64_t hash_of(const Step& step, const auto& name_of_peer) {
  const auto pair = [](int high, int low) {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(high)) << 32 |
           static_cast<std::uint32_t>(low);
  };
  const auto kinds = static_cast<int>(step.src.buffer) * 8 + static_cast<int>(step.dst.buffer);
  const std::uint64_t peers = pair(name_of_peer(step.recv_from), name_of_peer(step.send_to));
  const std::uint64_t chunks = pair(step.src.index, step.dst.index);
  return ordered(ordered(peers, chunks), pair(kinds, step.received_first ? 1 : 0));
}

// Of all that ranks do in a case, counted from the first rank of the root's box on: equal for cases
// that are one but for the numbers of their ranks.
std::uint64_t hash_but_for_names(const Algorithm& algorithm, ProofCase which,
                                 const std::vector<Cut>& cuts) {
  const int first = which.root - which.root % which.box;
  const auto name = [&](int rank) {
    return rank == kNobody ? kNobody : (rank - first + which.ranks) % which.ranks;
  };
  std::set<int> windows;
  std::uint64_t hash = static_cast<std::uint64_t>(algorithm.chunks(place_of(which, 0)));
  for (const Cut& cut : cuts) {
    which.slots = cut.slots;
    which.count = cut.count;
    const int window = slicing_of(which, algorithm.chunks(place_of(which, 0))).window();
    if (!windows.insert(algorithm.sends_ahead ? window : 1).second) continue;
    const StepSource source = source_of(algorithm, which);
    for (int i = 0; i < which.ranks; ++i) {
      hash = ordered(hash, static_cast<std::uint64_t>(i));
      for (const Step& step : source.steps(place_of(which, (first + i) % which.ranks))) {
        hash = ordered(hash, hash_of(step, name));
      }
    }
  }
  return hash;
}

class Survey {
 public:
  Survey(Checker& checker, const Algorithm& algorithm, const Scope& scope,
         const std::function<void(const ProofCase&)>& progress)
      : checker_(checker), algorithm_(algorithm), scope_(scope), progress_(progress) {}

  Proof run() {
    const bool box_matters = looks_at_box(algorithm_);
    for (const int ranks : rank_counts(scope_)) {
      if (too_many(ranks)) break;
      most_moves_ = 0;
      known_.clear();
      for (const int root : roots_for(algorithm_.collective, ranks, scope_)) {
        for (const int receiver : receivers_for(algorithm_.collective, ranks, root)) {
          const ProofCase which{.collective = algorithm_.collective,
                                .ranks = ranks,
                                .root = root,
                                .receiver = receiver,
                                .keeps_parts = keeps_parts(algorithm_)};
          if (!prove_boxes(which, boxes_for(ranks, box_matters, scope_))) return proof_;
        }
      }
      if (ranks <= kEveryRanks) proof_.every_ranks = ranks;
      proof_.most_ranks = ranks;
    }
    return proof_;
  }

 private:
  // Moves grow no faster than the square of ranks, give or take a logarithm.
  bool too_many(int ranks) const {
    if (ranks <= kEveryRanks || scope_.from_ranks == scope_.to_ranks) return false;
    const double growth = static_cast<double>(ranks) / std::max(proof_.most_ranks, 1);
    const std::uint64_t limit = algorithm_.chosen_by_cost ? kMostMoves : kMostMovesIfNamed;
    return static_cast<double>(most_moves_) * growth * growth > static_cast<double>(limit);
  }

  // A box in which every rank does the same as in one that was proved needs no other proof.
  bool prove_boxes(ProofCase which, const std::vector<int>& boxes) {
    which.lanes = algorithm_.lanes;
    for (which.lane = 0; which.lane < which.lanes; ++which.lane) {
      std::optional<ProofCase> proved;
      for (const int box : boxes) {
        which.box = box;
        if (which.ranks > 1 && !runs_on(algorithm_, which)) continue;
        if (!has_turn(which)) continue;
        ++proof_.cases;
        progress_(which);
        if (proved && same_schedules(algorithm_, *proved, which, cuts(which))) continue;
        if (!is_one_renamed(which) && !prove_cuts(which)) return false;
        if (!proved) proved = which;
      }
    }
    return true;
  }

  // Where only some cuts have their turn, lanes take turns with the boxes that a root is in: all of
  // them do the same inside of a box, and across boxes as the same root in any other.
  bool has_turn(const ProofCase& which) const {
    const bool in_turns = has_root(which.collective) && !algorithm_.chosen_by_cost;
    return !in_turns || asks_for_a_case() ||
           (which.root + which.root / which.box) % which.lanes == which.lane;
  }

  // Whether it is a case that was proved, with another root and all ranks renamed: then every word
  // of that proof holds of it. (Where ranks have parts, those would have to be renamed as well.) A
  // case that is not yet known is to be proved now.
  bool is_one_renamed(const ProofCase& which) {
    if (!has_root(which.collective) || holds_part_per_rank(which.collective)) return false;
    const std::uint64_t hash = hash_but_for_names(algorithm_, which, all_cuts(which));
    return !known_.insert({which.lane, which.box, which.root % which.box, hash}).second;
  }

  bool prove_cuts(ProofCase which) {
    Orders orders;
    if (which.ranks > 1 && which.ranks <= kEveryRanks) {
      const std::string fault = unsafe_loan(algorithm_, which);
      if (!fault.empty()) return fail(which, fault);
    }
    for (const Cut& cut : cuts(which)) {
      which.slots = cut.slots;
      which.count = cut.count;
      const Verdict verdict = checker_.check(which, source_of(algorithm_, which), orders);
      ++proof_.checks;
      proof_.moves += verdict.moves;
      most_moves_ = std::max(most_moves_, verdict.moves);
      if (verdict.scratch_chunks > proof_.scratch_chunks) {
        proof_.scratch_chunks = verdict.scratch_chunks;
        proof_.scratch_ranks = which.ranks;
      }
      if (!verdict.fault.empty()) return fail(which, verdict.fault);
    }
    return true;
  }

  bool fail(const ProofCase& which, const std::string& what) {
    proof_.fault = format("%s: %s", describe(which).c_str(), what.c_str());
    return false;
  }

  std::vector<Cut> all_cuts(const ProofCase& which) const {
    std::vector<Cut> all = cuts_of(algorithm_, which);
    if (scope_.slots) all = {{*scope_.slots, all.back().count}};
    for (Cut& cut : all) cut.count = scope_.count.value_or(cut.count);
    return all;
  }

  std::vector<Cut> cuts(const ProofCase& which) const {
    const std::vector<Cut> all = all_cuts(which);
    return asks_for_a_case() || algorithm_.chosen_by_cost ? all : in_turn(all, which);
  }
  bool asks_for_a_case() const { return scope_.root || scope_.slots || scope_.count; }

  // Of pairs there are so many that each case has its turn with some of the cuts only: with two,
  // and for other roots than the first with one of the shorter ones. That changes nothing about the
  // flow of data (survey.h), and for waiting there are enough cases.
  static std::vector<Cut> in_turn(const std::vector<Cut>& all, const ProofCase& which) {
    if (which.ranks > kEveryRanks) return all;
    const auto turn = static_cast<std::size_t>(which.ranks + which.box + which.root + which.lane);
    if (which.root != 0) return {all[turn % (all.size() - 1)]};
    return {all[turn % all.size()], all[(turn + 2) % all.size()]};
  }

  Checker& checker_;
  const Algorithm& algorithm_;
  const Scope& scope_;
  const std::function<void(const ProofCase&)>& progress_;
  Proof proof_;
  // Of the last rank count: the moves of a check, and what is proved: lane, box, the root's place
  // in its box, and what ranks do.
  std::uint64_t most_moves_ = 0;
  std::set<std::tuple<int, int, int, std::uint64_t>> known_;
};

}  // namespace

std::vector<Cut> cuts_for(Collective collective, int ranks, int chunk_count, int lanes) {
  // Where every rank has a part, `count` is its length; all parts are equally long.
  const int parts_a_lane = holds_part_per_rank(collective) ? 1 : chunk_count;
  const auto parts = static_cast<std::size_t>(parts_a_lane * lanes);
  if (ranks >= kManyRanks) return {{2, parts}};
  if (ranks > kEveryRanks) return {{2, parts}, {3, 3 * parts - parts / 2}};
  std::vector<Cut> all = {
      {2, 0}, {2, parts}, {5, parts}, {3, 3 * parts + parts / 3}, {5, 9 * parts - 1}};
  if (parts > 1) all.insert(all.begin() + 1, {2, parts / 2});
  return all;
}

bool looks_at_box(const Algorithm& algorithm) {
  constexpr int kRanks = 24;  // has many divisors
  ProofCase flat{.collective = algorithm.collective, .ranks = kRanks, .root = 5};
  for (flat.lane = 0; flat.lane < algorithm.lanes; ++flat.lane) {
    for (const int box : {2, 3, 4, 6, 8, 12, 24}) {
      ProofCase boxed = flat;
      boxed.box = box;
      if (!runs_on(algorithm, boxed) || !runs_on(algorithm, flat)) return true;
      if (!same_schedules(algorithm, flat, boxed, cuts_of(algorithm, flat))) return true;
    }
  }
  return false;
}

Proof prove(Checker& checker, const Algorithm& algorithm, const Scope& scope,
            const std::function<void(const ProofCase&)>& progress) {
  return Survey(checker, algorithm, scope, progress).run();
}

}  // namespace catenary
