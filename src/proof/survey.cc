#include "src/proof/survey.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <span>
#include <utility>

#include "src/base/error.h"
#include "src/proof/loans.h"
#include "src/proof/written_schedules.h"

namespace catenary::proof {
namespace {

static_assert(kMostRanksInPlace <= kEveryRanks, "what is lent in place is proved for all of them");

// Around powers of two, round numbers, primes.
constexpr int kSampledRanks[] = {65, 96, 100, 127, 128, 257, 512, 1000, 4096};
// From here on one root, box and cut more would cost seconds.
constexpr int kManyRanks = 512;
// And from here on so would links that hold many messages, and small boxes.
constexpr int kTooManyRanks = 2048;
constexpr std::uint32_t kFewestSlots = 2;
constexpr std::uint32_t kUsualSlots = 16;  // CATENARY_SLOTS

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

// Of many ranks, the box that mostly leaves the fewest steps inside and across.
int middle_divisor(int ranks) {
  return largest_divisor(ranks, static_cast<int>(std::sqrt(static_cast<double>(ranks))));
}

std::vector<int> boxes_for(const Algorithm& algorithm, int ranks, bool box_matters,
                           const Scope& scope) {
  if (scope.box) return ranks % *scope.box == 0 ? std::vector<int>{*scope.box} : std::vector<int>{};
  std::vector<int> boxes;
  if (ranks > kEveryRanks) {
    if (!box_matters) return {1};
    if (ranks >= kManyRanks) {
      const bool needs_few_moves = ranks >= kTooManyRanks || !algorithm.chosen_by_cost;
      return {needs_few_moves ? middle_divisor(ranks) : largest_divisor(ranks, 8)};
    }
    return unique({1, largest_divisor(ranks, 8), largest_divisor(ranks, ranks / 2)});
  }
  for (int box = 1; box <= ranks; ++box) {
    if (ranks % box == 0) boxes.push_back(box);
  }
  return boxes;
}

// Two that have no end are not.
bool same_steps(Steps ones, Steps others, std::uint32_t most) {
  for (std::uint32_t i = 0; i <= most; ++i) {
    const Step* one = ones.next();
    const Step* other = others.next();
    if (one == nullptr || other == nullptr) return one == other;
    if (*one != *other) return false;
  }
  return false;
}

// As large a `count` as gives each chunk one element. Where every rank has a part, it is the
// length of that; all parts are equally long.
std::size_t elements_a_round(Collective collective, int chunk_count, int lanes) {
  const int parts_a_lane = holds_part_per_rank(collective) ? 1 : chunk_count;
  return static_cast<std::size_t>(parts_a_lane * lanes);
}

std::vector<Cut> cuts_of(const Algorithm& algorithm, const ProofCase& which) {
  return cuts_for(algorithm, which.ranks, algorithm.chunks(place_of(which, 0)));
}

// Whether all ranks do the same in both.
bool same_schedules(const Algorithm& algorithm, const ProofCase& one, const ProofCase& other,
                    const std::vector<Cut>& cuts) {
  const int chunks = algorithm.chunks(place_of(one, 0));
  if (chunks != algorithm.chunks(place_of(other, 0))) return false;
  const std::uint32_t most = most_steps(one, chunks);
  for (const int window : windows_of(algorithm, one, cuts)) {
    const StepSource ones = source_with(algorithm, one, window);
    const StepSource others = source_with(algorithm, other, window);
    for (int rank = 0; rank < one.ranks; ++rank) {
      if (ones.scratch(place_of(one, rank)) != others.scratch(place_of(other, rank))) return false;
      Steps mine = ones.steps(place_of(one, rank));
      if (!same_steps(std::move(mine), others.steps(place_of(other, rank)), most)) return false;
    }
  }
  return true;
}

class Survey {
 public:
  Survey(Checker& checker, const Algorithm& algorithm, const Scope& scope,
         const std::function<void(const ProofCase&)>& progress)
      : checker_(checker), algorithm_(algorithm), scope_(scope), progress_(progress) {}

  Proof run() {
    const bool box_matters = looks_at_box(algorithm_);
    for (const int ranks : rank_counts(scope_)) {
      known_.clear();
      const std::uint64_t cases_before = proof_.cases;
      for (const int root : roots_for(algorithm_.collective, ranks, scope_)) {
        for (const int receiver : receivers_for(algorithm_.collective, ranks, root)) {
          const ProofCase which{.collective = algorithm_.collective,
                                .ranks = ranks,
                                .root = root,
                                .receiver = receiver,
                                .keeps_parts = keeps_parts(algorithm_),
                                .opens_links_only = opens_links_only(algorithm_)};
          if (!prove_boxes(which, boxes_for(algorithm_, ranks, box_matters, scope_))) return proof_;
        }
      }
      if (ranks <= kEveryRanks) proof_.every_ranks = ranks;
      if (proof_.cases > cases_before) proof_.most_ranks = ranks;
    }
    return proof_;
  }

 private:
  // A box in which every rank does the same as in one that was proved needs no other proof.
  bool prove_boxes(ProofCase which, const std::vector<int>& boxes) {
    which.lanes = algorithm_.lanes;
    for (which.lane = 0; which.lane < which.lanes; ++which.lane) {
      std::optional<ProofCase> proved;
      for (const int box : boxes) {
        which.box = box;
        if (which.ranks > 1 && !runs_on(algorithm_, which)) continue;
        ++proof_.cases;
        progress_(which);
        const std::vector<Cut> cuts = cuts_in(which);
        if (proved && same_schedules(algorithm_, *proved, which, cuts)) continue;
        if (!is_one_renamed(which, cuts)) {
          if (!prove_cuts(which, cuts)) return false;
          ++turn_;
        }
        if (!proved) proved = which;
      }
    }
    return true;
  }

  // A case that is not yet known is to be proved now.
  bool is_one_renamed(const ProofCase& which, const std::vector<Cut>& cuts) {
    if (!has_root(which.collective) || holds_part_per_rank(which.collective)) return false;
    const std::optional<std::uint64_t> hash = hash_but_for_names(algorithm_, which, cuts);
    return hash && !known_.insert({which.box, *hash}).second;
  }

  bool prove_cuts(ProofCase which, const std::vector<Cut>& cuts) {
    if (which.ranks <= kEveryRanks) write_schedules(which, windows_of(algorithm_, which, cuts));
    Orders orders;
    for (const Cut& cut : cuts) {
      which.slots = cut.slots;
      which.count = cut.count;
      const Verdict verdict = checker_.check(which, source_for(which), orders);
      ++proof_.checks;
      proof_.moves += verdict.moves;
      if (verdict.scratch_chunks > proof_.scratch_chunks) {
        proof_.scratch_chunks = verdict.scratch_chunks;
        proof_.scratch_ranks = which.ranks;
      }
      if (!verdict.fault.empty()) return fail(which, verdict.fault);
    }
    // Only of what pairs up.
    for (WrittenSchedules& schedules : written()) {
      if (which.ranks == 1 || which.ranks > kEveryRanks) break;
      ++proof_.loans;
      const std::string fault = loans_.unsafe_loan(algorithm_, which, schedules);
      if (!fault.empty()) return fail(which, fault);
    }
    return true;
  }

  void write_schedules(const ProofCase& which, const std::set<int>& windows) {
    windows_ = windows.size();
    if (written_.size() < windows_) written_.resize(windows_);
    std::size_t next = 0;
    for (const int window : windows) written_[next++].write(algorithm_, which, window);
  }
  std::span<WrittenSchedules> written() { return std::span(written_).first(windows_); }

  StepSource source_for(const ProofCase& which) {
    if (which.ranks > kEveryRanks) return source_of(algorithm_, which);
    const int window = window_of(algorithm_, which);
    return std::ranges::find(written(), window, &WrittenSchedules::window)->source();
  }

  bool fail(const ProofCase& which, const std::string& what) {
    proof_.fault = format("%s: %s", describe(which).c_str(), what.c_str());
    return false;
  }

  std::vector<Cut> cuts_in(const ProofCase& which) {
    std::vector<Cut> all = cuts_of(algorithm_, which);
    if (scope_.slots) all = {{*scope_.slots, all.back().count}};
    for (Cut& cut : all) cut.count = scope_.count.value_or(cut.count);
    const bool asks_for_a_case = scope_.root || scope_.slots || scope_.count;
    const bool takes_all =
        asks_for_a_case || algorithm_.chosen_by_cost || which.ranks > kEveryRanks;
    return takes_all ? all : some_of(all, which);
  }

  // An element a chunk with the shortest links, and of the first root also with the longest, where
  // steps depend on links, and with one of the others in turn.
  std::vector<Cut> some_of(const std::vector<Cut>& all, const ProofCase& which) {
    const int chunks = algorithm_.chunks(place_of(which, 0));
    const std::size_t parts = elements_a_round(which.collective, chunks, which.lanes);
    std::vector<Cut> some;
    std::vector<Cut> others;
    for (const Cut& cut : all) {
      const bool is_short = cut.slots == kFewestSlots;
      const bool is_long = cut.slots == kUsualSlots && algorithm_.sends_ahead && which.root == 0;
      (cut.count == parts && (is_short || is_long) ? some : others).push_back(cut);
    }
    if (which.root == 0) some.push_back(others[turn_ % others.size()]);
    return some;
  }

  Checker& checker_;
  const Algorithm& algorithm_;
  const Scope& scope_;
  const std::function<void(const ProofCase&)>& progress_;
  Proof proof_;
  std::size_t turn_ = 0;  // of the cuts that take turns
  LoanChecker loans_;
  std::vector<WrittenSchedules> written_;  // by window, of the case that is being proved
  std::size_t windows_ = 0;                // so many of those
  // What is proved of the last rank count: the box, and what ranks do.
  std::set<std::pair<int, std::uint64_t>> known_;
};

}  // namespace

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

// Of many ranks, the shortest links, which are the hardest to keep moving; and where steps depend
// on links, those that run, unless there are too many.
std::vector<Cut> cuts_for(const Algorithm& algorithm, int ranks, int chunk_count) {
  const std::size_t parts = elements_a_round(algorithm.collective, chunk_count, algorithm.lanes);
  if (ranks >= kManyRanks) {
    const bool runs_ahead = algorithm.sends_ahead && algorithm.chosen_by_cost;
    if (!runs_ahead || ranks >= kTooManyRanks) return {{kFewestSlots, parts}};
    return {{kFewestSlots, parts}, {kUsualSlots, parts}};
  }
  if (ranks > kEveryRanks)
    return {{kFewestSlots, parts}, {kUsualSlots, parts}, {3, 3 * parts - parts / 2}};
  std::vector<Cut> all = {{kFewestSlots, 0},    {kFewestSlots, parts},      {5, parts},
                          {kUsualSlots, parts}, {3, 3 * parts + parts / 3}, {5, 9 * parts - 1}};
  if (parts > 1) all.insert(all.begin() + 1, {kFewestSlots, parts / 2});
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

}  // namespace catenary::proof
