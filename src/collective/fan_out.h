// Fan-outs: steps of a schedule, one behind the other, that send the same chunk to several ranks.
//
// Where these share memory with the sender, it copies such a chunk once, to where all of them read
// it, and not to each. What counts as one follows from the schedule, so that the engine, which does
// that, and the model of time, which prices it, mean the same.
//
// A link that messages come back on has lines at hand for the next one, in which a copy costs
// little: there more ranks, and longer messages, are needed.
//
// Pure; nothing fails.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "src/base/size_literals.h"
#include "src/collective/schedule.h"

namespace catenary {

enum class FanOut : std::uint8_t {
  kNone,
  kOneWay,     // to ranks that send nothing to this one
  kExchanged,  // to ranks of which some do
};

inline constexpr std::size_t kLeastFannedOut = 2;
inline constexpr std::size_t kLeastExchanged = 4;
// More have not been measured: all of them would read out of one core's cache.
inline constexpr std::size_t kMostFannedOut = 16;
// Where less than that moves in a pass it is copied to each.
constexpr std::size_t least_fanned_out(FanOut fan_out) {
  return fan_out == FanOut::kNone ? SIZE_MAX : fan_out == FanOut::kOneWay ? 8_KB : 32_KB;
}

struct FanOutStep {
  FanOut fan_out = FanOut::kNone;
  bool is_first = false;  // of its fan-out: the others send what is there already
};

// Where a peer can read what is copied once, as a number; kNowhere if it gets a copy of its own.
// What goes to peers of several places is copied once for those of one, who are the most.
using PlaceOf = std::function<std::uintptr_t(int peer)>;
inline constexpr std::uintptr_t kNowhere = 0;

// One entry a step of a schedule.
std::vector<FanOutStep> fan_outs(const Schedule& schedule, const PlaceOf& place_of);

}  // namespace catenary
