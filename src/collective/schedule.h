// A collective algorithm is a value: for one rank, a list of steps over chunks. No I/O, no time, no
// bytes; pure functions make it, and the same value is executed, checked, timed and drawn.
//
// A step takes a chunk from a peer, or from `src`, or from both (then it reduces the two), and
// keeps the result in `dst`, passes it on to a peer, or both. Rules that the checker enforces:
//
//   * Between two ranks, messages arrive in the order sent; each send pairs with one receive.
//   * Steps run in order. A step that waits for a peer holds back the steps after it.
//   * A reduction that writes `output` is complete: it holds every rank's contribution once.
//   Partial
//     results go to scratch or on to a peer. (Integer averages divide where this happens.)
//   * Scratch only carries a fold: consecutive steps that each receive and reduce into the same
//     scratch chunk, the last one into its real destination. The engine serves a fold with one
//     n-input kernel call, always, so that the bits do not depend on timing.
#pragma once

#include <cstdint>
#include <vector>

namespace catenary {

inline constexpr int kNobody = -1;

enum class Buffer : std::uint8_t { kNone, kInput, kOutput, kScratch };

// The index-th of the parts that a Partition cuts a buffer into.
struct Chunk {
  Buffer buffer = Buffer::kNone;
  int index = 0;
  explicit operator bool() const { return buffer != Buffer::kNone; }
  bool operator==(const Chunk&) const = default;
};
constexpr Chunk input(int index) { return {Buffer::kInput, index}; }
constexpr Chunk output(int index) { return {Buffer::kOutput, index}; }
constexpr Chunk scratch(int index) { return {Buffer::kScratch, index}; }

struct Step {
  int recv_from = kNobody;
  Chunk src = {};
  Chunk dst = {};
  int send_to = kNobody;
};

// One rank's part. `chunk_count` is how many parts input and output are cut into (the longer one,
// where they differ).
struct Schedule {
  int chunk_count = 1;
  std::vector<Step> steps;
  void add(const Step& step) { steps.push_back(step); }
};

}  // namespace catenary
