// Which steps of a schedule deal with a peer. Made in two runs over the steps, for all peers.
//
// A value; nothing fails.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "src/collective/schedule.h"

namespace catenary {

class Traffic {
 public:
  Traffic() = default;
  Traffic(const Schedule& schedule, int ranks) { make(schedule, ranks); }
  // The same, in the memory of the last.
  void make(const Schedule& schedule, int ranks);

  // The numbers of the steps that send to a peer, and of those that receive from it, in order.
  std::span<const std::uint32_t> sends_to(int peer) const { return sends_.with(peer); }
  std::span<const std::uint32_t> receives_from(int peer) const { return receives_.with(peer); }
  // Whether a step reduces one message with what the rank has itself, outside of any fold.
  bool sums_two(std::uint32_t step) const { return sums_two_[step]; }

 private:
  struct ByPeer {
    std::vector<std::uint32_t> begins;  // by peer, in `steps`; and where the last one ends
    std::vector<std::uint32_t> steps;

    std::span<const std::uint32_t> with(int peer) const {
      const auto at = static_cast<std::size_t>(peer);
      return std::span(steps).subspan(begins[at], begins[at + 1] - begins[at]);
    }
  };
  static void sort(const Schedule& schedule, int ranks, int Step::*peer, ByPeer& sorted);

  ByPeer sends_;
  ByPeer receives_;
  std::vector<bool> sums_two_;
};

}  // namespace catenary
