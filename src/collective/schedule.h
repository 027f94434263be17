// A collective algorithm is a value: for one rank, a sequence of steps over chunks. No I/O, no
// time, no bytes; pure functions yield it, and the same value is executed, checked, timed and
// drawn.
//
// A step takes a chunk from a peer, or from `src`, or from both (then it reduces the two), and
// keeps the result in `dst`, passes it on to a peer, or both. Where chunks differ in length, it
// names one. Rules that the checker enforces:
//
//   * Between two ranks, messages arrive in the order sent; each send pairs with one receive of the
//     same length.
//   * Steps run in order. A step that waits for a peer holds back the steps after it.
//   * A reduction that writes `output` is complete: it holds every rank's contribution once.
//     (Integer averages divide there.) Partial results go to scratch, or on to a peer.
//   * `carry` carries a fold: consecutive steps that each receive and reduce into the same carry,
//     the last one into its real destination. The engine serves a fold slice by slice with one
//     n-input kernel call, always, so that the bits do not depend on timing and the carry needs no
//     memory.
//   * A link holds `Place.window` messages that nobody has taken yet, whatever their length; a rank
//     that sends more ahead waits until the other end takes one. Where both ends do, they wait for
//     ever.
//   * `scratch` is memory of the rank's own, for the time of the operation, and of no more chunks
//     than the algorithm declares; it begins undefined.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/base/generator.h"
#include "src/base/types.h"

namespace catenary {

enum class Buffer : std::uint8_t { kNone, kInput, kOutput, kScratch, kCarry };
inline constexpr std::size_t kBufferKinds = 5;

// The index-th of the parts that a Partition cuts a buffer into. A scratch or carry chunk is as
// long as the part of its index, counted modulo the number of parts.
struct Chunk {
  Buffer buffer = Buffer::kNone;
  int index = 0;
  explicit operator bool() const { return buffer != Buffer::kNone; }
  bool operator==(const Chunk&) const = default;
};
constexpr Chunk input(int index) { return {Buffer::kInput, index}; }
constexpr Chunk output(int index) { return {Buffer::kOutput, index}; }
constexpr Chunk scratch(int index) { return {Buffer::kScratch, index}; }
constexpr Chunk carry(int index) { return {Buffer::kCarry, index}; }

struct Step {
  int recv_from = kNobody;
  Chunk src = {};
  Chunk dst = {};
  int send_to = kNobody;
  // A reduction is `src` first, then what was received; or the other way round. Two ranks that
  // exchange partial results and both reduce them must do it in one order to get the same bits.
  bool received_first = false;
  bool operator==(const Step&) const = default;
};
using Steps = Generator<Step>;

// Where a rank stands: all that its part in an algorithm may depend on.
struct Place {
  int rank = 0;
  int ranks = 1;
  int root = 0;  // of a collective with a root; the peer of a send or receive
  int box = 1;   // so many consecutive ranks share a machine; ranks is a multiple of it
  int lane = 0;  // of the parallel copies of the schedule, each with links of its own
  // A link holds so many messages that nobody has taken yet. One, unless they are short.
  int window = 1;

  // Ranks sit on a circle: the one `distance` places after this, or before it if negative;
  // |distance| <= ranks.
  constexpr int after(int distance) const {
    const int there = rank + distance;  // a division would take longer than all else
    return there < 0 ? there + ranks : there >= ranks ? there - ranks : there;
  }
};

// The steps of one rank, written out. `chunk_count` is how many parts input and output are cut into
// (the longer one, where they differ); all ranks have the same.
struct Schedule {
  int chunk_count = 1;
  std::vector<Step> steps;
  void add(const Step& step) { steps.push_back(step); }
};

}  // namespace catenary
