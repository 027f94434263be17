// Work: what happens along a path of a schedule, counted. A time is these counts times the
// parameters of a machine (cost.h). Values only; any thread; nothing fails.
#pragma once

namespace catenary {

// Between which ranks: those that share a box, or not.
enum class Reach : int { kBox, kFar };

struct Work {
  double steps = 0;
  double reduced = 0;       // chunks that are operands of a reduction
  double local = 0;         // chunks read from or written to the rank's own buffers
  double hops[2] = {};      // messages that somebody waited for, by Reach
  double messages[2] = {};  // messages written or taken, each end counts
  double wired[2] = {};     // chunks written to or read from links
  // Of those written inside of a box: that need not be copied, if they are long enough (fan_out.h).
  double fanned_out = 0;
  double exchanged = 0;

  Work& operator+=(const Work& other) {
    steps += other.steps;
    reduced += other.reduced;
    local += other.local;
    fanned_out += other.fanned_out;
    exchanged += other.exchanged;
    for (int i = 0; i < 2; ++i) {
      hops[i] += other.hops[i];
      messages[i] += other.messages[i];
      wired[i] += other.wired[i];
    }
    return *this;
  }
};

// Applies `function` to each count of some works, `into` being the first.
template <typename Function, typename... Works>
void for_each_count(Function&& function, Work& into, const Works&... from) {
  function(into.steps, from.steps...);
  function(into.reduced, from.reduced...);
  function(into.local, from.local...);
  function(into.fanned_out, from.fanned_out...);
  function(into.exchanged, from.exchanged...);
  for (int i = 0; i < 2; ++i) {
    function(into.hops[i], from.hops[i]...);
    function(into.messages[i], from.messages[i]...);
    function(into.wired[i], from.wired[i]...);
  }
}

}  // namespace catenary
