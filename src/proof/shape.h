// The rules of schedule.h that can be seen in one rank's steps alone, step by step.
//
// One thread at a time; nothing waits or fails.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "src/proof/proof_case.h"

namespace catenary::proof {

class Shape {
 public:
  // No rank may use more scratch chunks than `most_scratch`. One is as long as what moves of a
  // chunk in one pass, fewer bytes than a link holds. Carries need no memory.
  void begin(const ProofCase& which, int chunk_count, int most_scratch);

  // What is wrong with a rank's next step, or null. The steps of a fold are asked about one after
  // the other, with no other rank's between them.
  const char* wrong(const Step& step, int rank) {
    return is_simple(step, rank) ? nullptr : wrong_if_not_simple(step, rank);
  }
  // The same of a rank's end of steps.
  const char* wrong_end() const { return carry_ ? "a fold without end" : nullptr; }

  // A chunk's index among the parts.
  int part_of(const Chunk& chunk) const {
    return chunk.index < chunk_count_ ? chunk.index : chunk.index % chunk_count_;
  }

 private:
  // Nearly all steps, of hundreds of millions, are right for simple reasons. False says nothing.
  bool is_simple(const Step& step, int rank) const {
    const bool takes = step.recv_from != kNobody;
    const bool sends = step.send_to != kNobody;
    const bool reads = static_cast<bool>(step.src);
    const bool writes = static_cast<bool>(step.dst);
    return !carry_ && step.recv_from != rank && is_peer(step.recv_from) && is_peer(step.send_to) &&
           (takes ? !reads || reduces_ : reads) && (sends || writes) &&
           (per_rank_ || (reads != writes) || (reads && step.src.index == step.dst.index)) &&
           is_for_all(step.src, sources_) && is_for_all(step.dst, targets_);
  }
  bool is_peer(int rank) const {
    return static_cast<unsigned>(rank) + 1u <= static_cast<unsigned>(which_.ranks);
  }
  // So many chunks of each kind of buffer may be used by any rank.
  using Limits = std::array<unsigned, kBufferKinds>;  // by Buffer
  static bool is_for_all(const Chunk& chunk, const Limits& limits) {
    return static_cast<unsigned>(chunk.index) < limits[static_cast<std::size_t>(chunk.buffer)];
  }
  void set_limits();

  const char* wrong_if_not_simple(const Step& step, int rank);
  const char* wrong_work(const Step& step) const;
  const char* wrong_src(const Chunk& chunk, int rank) const;
  const char* wrong_dst(const Chunk& chunk, int rank) const;
  const char* wrong_fold(const Step& step, int rank);
  bool is_outside(const Chunk& chunk) const {
    const bool is_private = chunk.buffer == Buffer::kScratch || chunk.buffer == Buffer::kCarry;
    return chunk.index < 0 || (!is_private && chunk.index >= chunk_count_);
  }
  bool is_beyond_scratch(const Chunk& chunk) const {
    return chunk.buffer == Buffer::kScratch && chunk.index >= most_scratch_;
  }

  ProofCase which_;
  Limits sources_ = {};
  Limits targets_ = {};
  int chunk_count_ = 1;
  int most_scratch_ = 0;
  bool reduces_ = false;
  bool per_rank_ = false;
  bool short_input_ = false;  // one chunk only, where the output has several
  bool short_output_ = false;
  Chunk carry_;                 // of the fold under way
  std::vector<unsigned> seen_;  // by peer: the fold that took its message last
  unsigned fold_ = 0;
};

}  // namespace catenary::proof
