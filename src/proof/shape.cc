#include "src/proof/shape.h"

#include <algorithm>

namespace catenary::proof {
namespace {

bool takes_message(const Step& step) { return step.recv_from != kNobody; }
bool sends_message(const Step& step) { return step.send_to != kNobody; }

}  // namespace

void Shape::begin(const ProofCase& which, int chunk_count, int most_scratch) {
  which_ = which;
  chunk_count_ = chunk_count;
  most_scratch_ = most_scratch;
  reduces_ = reduces(which.collective);
  per_rank_ = holds_part_per_rank(which.collective);
  short_input_ = gathers(which.collective);
  short_output_ = scatters(which.collective);
  set_limits();
  carry_ = {};
  if (seen_.size() < static_cast<std::size_t>(which.ranks)) {
    seen_.resize(static_cast<std::size_t>(which.ranks));
  }
}

// None of a buffer that some rank lacks, nor of carries, which make a fold.
void Shape::set_limits() {
  const auto limit = [](Limits& limits, Buffer buffer, int chunks) {
    limits[static_cast<std::size_t>(buffer)] = static_cast<unsigned>(chunks);
  };
  sources_ = targets_ = {};
  for (Limits* limits : {&sources_, &targets_}) {
    limit(*limits, Buffer::kNone, 1);  // its index is 0
    limit(*limits, Buffer::kScratch, std::max(most_scratch_, 0));
  }
  bool all_read = true;
  bool all_write = true;
  for (int rank = 0; rank < which_.ranks; ++rank) {
    all_read = all_read && has_input(which_, rank);
    all_write = all_write && has_output(which_, rank);
  }
  if (all_read) limit(sources_, Buffer::kInput, short_input_ ? 1 : chunk_count_);
  if (!all_write) return;
  for (Limits* limits : {&sources_, &targets_}) {
    limit(*limits, Buffer::kOutput, short_output_ ? 1 : chunk_count_);
  }
}

const char* Shape::wrong_if_not_simple(const Step& step, int rank) {
  if (!is_peer(step.recv_from) || !is_peer(step.send_to)) return "no such peer";
  const char* found = wrong_work(step);
  if (found == nullptr && step.src) found = wrong_src(step.src, rank);
  if (found == nullptr && step.dst) found = wrong_dst(step.dst, rank);
  return found != nullptr ? found : wrong_fold(step, rank);
}

const char* Shape::wrong_work(const Step& step) const {
  if (!takes_message(step) && !step.src) return "takes nothing";
  const bool is_odd = (!step.src && step.src.index != 0) || (!step.dst && step.dst.index != 0);
  if (is_odd) return "names a chunk of no buffer";
  if (!sends_message(step) && !step.dst) return "leads nowhere";
  if (is_beyond_scratch(step.src) || is_beyond_scratch(step.dst)) {
    return "uses more scratch than its algorithm declares";
  }
  if (!step.src && !step.dst && !per_rank_) return "names no chunk, so its length is unknown";
  if (takes_message(step) && step.src && !reduces_) return "reduces in a collective that does not";
  if (step.src && step.dst && !per_rank_ && step.src.index != step.dst.index &&
      part_of(step.src) != part_of(step.dst)) {
    return "src and dst may differ in length";
  }
  return nullptr;
}

const char* Shape::wrong_src(const Chunk& chunk, int rank) const {
  if (is_outside(chunk)) return "src is outside of its buffer";
  if (chunk.buffer == Buffer::kInput) {
    if (!has_input(which_, rank)) return "this rank has no input";
    if (chunk.index > 0 && short_input_) return "input is one chunk only";
  }
  if (chunk.buffer == Buffer::kOutput) {
    if (!has_output(which_, rank)) return "this rank has no output";
    if (chunk.index > 0 && short_output_) return "output is one chunk only";
  }
  return nullptr;
}

const char* Shape::wrong_dst(const Chunk& chunk, int rank) const {
  if (chunk.buffer == Buffer::kInput) return "writes to input";
  if (is_outside(chunk)) return "dst is outside of its buffer";
  if (chunk.buffer == Buffer::kOutput) {
    if (!has_output(which_, rank)) return "this rank has no output";
    if (chunk.index > 0 && short_output_) return "output is one chunk only";
  }
  return nullptr;
}

// Follows a fold from step to step.
const char* Shape::wrong_fold(const Step& step, int rank) {
  const bool continues = step.src.buffer == Buffer::kCarry;
  const bool goes_on = step.dst.buffer == Buffer::kCarry;
  if (!continues && !goes_on && !carry_) {
    // The engine reads its own message in place, which only folds can.
    const bool own = step.recv_from == rank && !is_point_to_point(which_.collective);
    return own ? "takes its own message outside of a fold" : nullptr;
  }
  if (continues != static_cast<bool>(carry_)) {
    return continues ? "reads a carry outside of a fold" : "cuts a fold short";
  }
  if (continues && step.src != carry_) return "a fold changes its carry";
  if (!takes_message(step)) return "a step of a fold takes no message";
  if (step.received_first) return "a fold has one order, that of its steps";
  if (!continues) ++fold_;
  unsigned& seen = seen_[static_cast<std::size_t>(step.recv_from)];
  if (seen == fold_) return "a fold takes two messages from one peer";
  seen = fold_;
  if (goes_on && sends_message(step)) return "sends a partial fold";
  if (continues && goes_on && step.dst != carry_) return "a fold changes its carry";
  carry_ = goes_on ? step.dst : Chunk{};
  return nullptr;
}

}  // namespace catenary::proof
