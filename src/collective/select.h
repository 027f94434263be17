// Which algorithm a collective runs, in how many lanes and slices: the one that the model of time
// expects to be the fastest, among those that the user allows; of pairs (algorithms/hierarchical.h)
// that nobody named, among a few.
//
// All ranks must come to the same answer, so all must ask with the same numbers: the communicator
// agrees on them when it is made. Pure; one thread at a time (a selector remembers its answers, one
// for each power of two of bytes); nothing waits.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "src/collective/algorithms.h"
#include "src/collective/cost.h"
#include "src/collective/rules.h"

namespace catenary {

struct Selection {
  const Algorithm* algorithm = nullptr;
  int lanes = 1;
  Cut cut = {};
  double time_ns = 0;  // expected, at the power of two that stands for the size
};

class Selector {
 public:
  // The setting's cut: what the links can carry, the longest slice and their slots.
  Selector(const Setting& setting, AlgorithmRules rules);

  // For `bytes` of the longer buffer. Sizes between the same powers of two, rounded to the nearer,
  // have one answer. Throws Error(kInvalidUsage) if the rules leave the collective nothing.
  const Selection& select(Collective collective, std::size_t bytes) {
    const Selection& known = known_[index_of(collective)][size_class(bytes)];
    return known.algorithm != nullptr ? known : decide(collective, size_class(bytes));
  }

  // How sends and receives of `bytes` are cut, whatever the rules. They come in groups, mostly one
  // for each rank: what keeps the slots of an all-to-all in the caches does the same for theirs.
  const Cut& message_cut(std::size_t bytes) {
    std::optional<Cut>& known = message_cuts_[size_class(bytes)];
    return known ? *known : known.emplace(decide_message_cut(size_class(bytes)));
  }

  // The same, null if it was not asked for yet.
  const Cut* known_message_cut(std::size_t bytes) const {
    const std::optional<Cut>& known = message_cuts_[size_class(bytes)];
    return known ? &*known : nullptr;
  }

  const AlgorithmRules& rules() const { return rules_; }

  // Everything that could run, the choice first and then the fastest; each with its best cut.
  std::vector<Selection> candidates(Collective collective, std::size_t bytes) const;
  // How long what select() chooses takes.
  double estimate_ns(Collective collective, std::size_t bytes);

  // Sizes of a class are those from three quarters of its power of two on.
  static constexpr std::size_t size_class(std::size_t bytes) {
    return static_cast<std::size_t>(std::bit_width(bytes + bytes / 3));
  }
  static constexpr std::size_t kSizeClasses = 66;

 private:
  static std::size_t index_of(Collective collective) {
    return static_cast<std::size_t>(collective);
  }
  const Selection& decide(Collective collective, std::size_t size_class);
  [[noreturn]] void refuse(Collective collective) const;
  Cut decide_message_cut(std::size_t size_class) const;
  static void prefer(std::vector<Selection>& sorted, std::string_view name, double tie);
  void cut_passes(const Algorithm& algorithm, std::size_t bytes, Cut& cut) const;
  bool has_room(const Algorithm& algorithm, std::size_t bytes) const;
  enum class Lengths { kAlike, kUneven };  // of chunks
  Cut longest_cut(const Algorithm& algorithm, Lengths lengths, std::size_t bytes) const;
  Selection priced(const Algorithm& algorithm, Lengths lengths, std::size_t bytes) const;
  // Two ranks that share memory.
  bool is_pair() const { return setting_.nranks == 2 && setting_.machine.box == 2; }
  Place place() const { return {.ranks = setting_.nranks, .box = setting_.machine.box}; }

  const Setting setting_;
  const AlgorithmRules rules_;
  std::array<std::array<Selection, kSizeClasses>, kCollectiveCount> known_;
  std::array<std::optional<Cut>, kSizeClasses> message_cuts_;
};

}  // namespace catenary
