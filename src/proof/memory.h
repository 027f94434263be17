// The memory of all ranks in a schedule that is being checked: input, output and scratch, element
// by element, as fingerprints.
//
// Output is written once, with the right result, or not at all: so one bit of it is kept, and it
// is read as what belongs there. Input and output lie as in the layout that NCCL documents for
// working in place, where there is one: input is lost where output was written over it. Whoever
// keeps to that is right with separate buffers as well.
//
// One thread at a time; nothing waits; begin() throws Error where there is no memory. Faults are
// told in words, empty if there is none.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "src/base/error.h"
#include "src/base/mapping.h"
#include "src/proof/fingerprint.h"
#include "src/proof/proof_case.h"

namespace catenary::proof {

// In which order each part of a collective's result was reduced, kept from one run of a schedule to
// the next: it may not depend on counts, slots and slices. Empty at first.
class Orders {
 public:
  // Whether that is the order seen before, if there was any.
  bool agrees(std::size_t part, std::uint64_t order) {
    if (part >= by_part_.size()) by_part_.resize(part + 1);
    if (by_part_[part] == 0) by_part_[part] = order;
    return by_part_[part] == order;
  }
  std::uint64_t of(std::size_t part) const { return part < by_part_.size() ? by_part_[part] : 0; }

 private:
  std::vector<std::uint64_t> by_part_;
};

class Memory {
 public:
  // A rank's scratch has so many elements.
  void begin(const ProofCase& which, Orders& orders, std::size_t scratch_elements);

  const char* read_input(int rank, std::size_t element, Fingerprint& value) const {
    value = given(rank, element);
    return is_overwritten(rank, element) ? "reads input that was overwritten in place" : nullptr;
  }

  // `chunk` is the index of the output's chunk that the element lies in.
  const char* read_output(int rank, int chunk, std::size_t element, Fingerprint& value) const {
    if (!is_written(rank, element)) return "reads output before it is there";
    value = result(rank, chunk, element);
    return nullptr;
  }

  // A reduction that is written to output becomes finished, if it is complete. False if what is
  // written does not belong there; refusal() then says why.
  bool write_output(int rank, int chunk, std::size_t element, bool was_reduced,
                    Fingerprint& value) {
    if (is_written(rank, element)) return refuse(element, "twice");
    const Fingerprint unfinished = value;
    if (was_reduced) value = finished(value);
    const Fingerprint belongs = result(rank, chunk, element);
    if (value.sum != belongs.sum) return refuse_value(rank, chunk, element, unfinished);
    if (reduces_ && !orders_->agrees(part_of_order(rank, chunk), value.order)) {
      return refuse(element,
                    "reduced in another order than at another rank or with other cuts: its bits "
                    "may differ");
    }
    const std::size_t bit = static_cast<std::size_t>(rank) * outputs_ + element;
    bits_[bit / 64] |= std::uint64_t{1} << (bit % 64);
    ++written_[static_cast<std::size_t>(rank)];
    return true;
  }
  const std::string& refusal() const { return refusal_; }

  const char* read_scratch(int rank, std::size_t at, Fingerprint& value) const {
    const auto index = static_cast<std::size_t>(rank);
    const std::uint64_t* const words = scratch_of(index) + at * words_each_;
    const bool is_there = at < scratch_ends_[index];
    value = {is_there ? words[0] : 0, is_there && reduces_ ? words[1] : 0};
    return value == kUndefined ? "reads scratch before it is there" : nullptr;
  }
  void write_scratch(int rank, std::size_t at, const Fingerprint& value) {
    CATENARY_ASSERT(at < scratch_stride_);
    const auto index = static_cast<std::size_t>(rank);
    std::uint64_t* const mine = scratch_of(index);
    std::size_t& end = scratch_ends_[index];
    if (end < at) std::fill(mine + end * words_each_, mine + at * words_each_, 0);  // undefined
    end = std::max(end, at + 1);
    mine[at * words_each_] = value.sum;
    if (reduces_) mine[at * words_each_ + 1] = value.order;
  }
  // What a pass left in scratch is undefined in the next.
  void forget_scratch(int rank) { scratch_ends_[static_cast<std::size_t>(rank)] = 0; }

  // Output elements that the rank has written.
  std::size_t written(int rank) const { return written_[static_cast<std::size_t>(rank)]; }
  bool is_written(int rank, std::size_t element) const {
    const std::size_t bit = static_cast<std::size_t>(rank) * outputs_ + element;
    return (bits_[bit / 64] >> (bit % 64) & 1) != 0;
  }

  const Fingerprints& fingerprints() const { return fingerprints_; }

 private:
  // The element of the inputs that belongs at a place of the output.
  std::size_t source_element(int rank, int chunk, std::size_t element) const {
    return element + static_cast<std::size_t>(rank) * given_a_rank_ -
           static_cast<std::size_t>(chunk) * got_a_rank_;
  }
  // Where nothing is reduced, sums tell all, and scratch holds nothing else: a case waits for the
  // memory of thousands of ranks.
  Fingerprint given(int rank, std::size_t element) const {
    const Fingerprint leaf = fingerprints_.leaf(rank, element);
    return {leaf.sum, reduces_ ? leaf.order : 0};
  }
  // What belongs there.
  Fingerprint result(int rank, int chunk, std::size_t element) const {
    const std::size_t source = source_element(rank, chunk, element);
    if (!reduces_) return given(gathered_ ? chunk : which_.root, source);
    if (which_.ranks == 1) return given(0, source);
    return finished(
        {fingerprints_.whole(which_.ranks, source), orders_->of(part_of_order(rank, chunk))});
  }
  std::size_t part_of_order(int rank, int chunk) const {
    return static_cast<std::size_t>(scattered_ ? rank : chunk);
  }
  bool is_overwritten(int rank, std::size_t element) const {
    // In place a rank's only part of one buffer is the one of its number in the other.
    const std::size_t at = element + static_cast<std::size_t>(rank) * (got_a_rank_ - given_a_rank_);
    return at < outputs_ && in_place_ && is_written(rank, at);
  }
  void reserve_scratch(std::size_t elements);
  std::uint64_t* scratch_of(std::size_t rank) const {
    return scratch_ + rank * scratch_stride_ * words_each_;
  }
  bool refuse(std::size_t element, const char* how);
  bool refuse_value(int rank, int chunk, std::size_t element, const Fingerprint& value);

  ProofCase which_;
  bool reduces_ = false;
  bool in_place_ = false;   // there is a layout for it: NCCL's, or for AlltoAll one on the other
  bool gathered_ = false;   // the output holds a part of each rank
  bool scattered_ = false;  // the inputs hold a part for each rank
  std::size_t given_a_rank_ = 0;  // elements of those, or none
  std::size_t got_a_rank_ = 0;
  Orders* orders_ = nullptr;
  Fingerprints fingerprints_;
  std::size_t outputs_ = 0;          // elements of an output
  std::vector<std::uint64_t> bits_;  // rank * outputs_ + element: was it written?
  std::vector<std::size_t> written_;
  Mapping scratch_mapping_;  // stays, since touching it first costs much
  std::uint64_t* scratch_ = nullptr;
  std::size_t words_each_ = 2;             // of an element: its sum, and its order if that counts
  std::size_t scratch_stride_ = 0;         // elements from rank to rank
  std::vector<std::size_t> scratch_ends_;  // by rank: what is beyond is undefined
  std::string refusal_;
};

}  // namespace catenary::proof
