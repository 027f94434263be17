// Which messages of a schedule may be lent: read by the receiver where they lie, instead of being
// copied into a slot. What is lent must not change until the receiver has taken it.
//
// Output is written once, so it may be lent as soon as it is there. Input does not change at all,
// unless the operation works in place: then it may be lent if what is written over it cannot come
// before the receiver has taken it. That is seen from the schedules of the two: what is written
// over it comes from that same receiver, who sends it in the step that takes the message, or later.
//
// Of what is both kept and handed on as it came, input is lent: the receiver need not wait for the
// copy, and does not read lines that were just written.
//
// Where a peer reduces what it is lent and sends the result back, in one step, to where it is only
// kept, it may put it there itself.
//
// Where two ranks each hand on what they keep, and then keep what comes from the other, each may
// put its part into both outputs in one go instead of reading the other's.
//
// Pure; nothing fails.
#pragma once

#include <functional>
#include <vector>

#include "src/collective/algorithms.h"
#include "src/collective/traffic.h"

namespace catenary {

// Among more, nothing is lent in place that is written over: working out whether that is safe would
// cost more than it gives.
inline constexpr int kMostRanksInPlace = 64;

struct Lending {
  Chunk chunk = {};       // what may be lent in place of the message; none: it must be copied
  bool in_place = false;  // also where input and output share memory
  // Of output: where the peer may put what it makes of the message and would send back. Whether
  // input and output share memory or not: nothing else looks there meanwhile.
  Chunk returned = {};
  // Of output, unless it shares memory with input: where the peer may put what it sends us itself,
  // if we do the same for it. Then both are there when what was lent has been taken.
  Chunk exchanged = {};
};

// For each step of `mine`, which is schedule_of(algorithm, at).
std::vector<Lending> lendings(const Algorithm& algorithm, const Place& at, const Schedule& mine);

// The same where the schedules of others are at hand: the traffic of any rank in that of its own
// place. What is returned may change at the next call.
using TrafficOf = std::function<const Traffic&(int rank)>;
std::vector<Lending> lendings(const Algorithm& algorithm, const Place& at, const Schedule& mine,
                              const TrafficOf& traffic_of);

}  // namespace catenary
