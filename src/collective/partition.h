// Where the chunks of a schedule lie in the buffers, and how they are cut to fit through links.
//
//   buffer   |------- chunk 0 -------|------- chunk 1 -------|---- chunk 2 ----|   Partition
//   chunk    |---- pass 0 ----|-- pass 1 --|                                       Slicing
//   pass     | slice | slice | slice |            a slice fits into one slot
//
// A fused step holds a received slot until a slot to send on is free. So that a ring of such steps
// cannot block itself, a message may span at most slots - 1 slots; a longer chunk moves in several
// passes, each a run of the whole schedule over the next part of every chunk. Passes are disjoint.
//
// Values, constexpr, in elements; called for every message, so what divides is kept off the path of
// small ones. Both ends of a link compute the same cuts from the same arguments. Nothing fails:
// arguments are checked where the user's enter.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/base/error.h"
#include "src/base/rounding.h"
#include "src/collective/operation.h"
#include "src/collective/schedule.h"

namespace catenary {

// Cuts fall on multiples of this where the elements allow, so that two ranks never write to one
// cache line and kernels see whole vectors.
inline constexpr std::size_t kCutBytes = 64;

// A run of elements, counted from the start of a buffer.
struct Range {
  std::size_t offset = 0;
  std::size_t count = 0;
  bool operator==(const Range&) const = default;
};

// The parts of an uneven collective, as the caller lays them out: one for each rank, or the only
// one of a buffer that has no more.
struct UnevenParts {
  std::vector<Range> input;
  std::vector<Range> output;
};

// How many elements lie between two places that may be cut.
constexpr std::size_t cut_elements(std::size_t element_bytes) {
  const std::size_t elements = divide_down_quickly(kCutBytes, element_bytes);
  return elements * element_bytes == kCutBytes ? elements : 1;
}

// Which elements a lane moves, of `count`: lanes cut them as evenly as cuts allow.
constexpr Range lane_range(std::size_t count, std::size_t element_bytes, int lane, int lanes);

class Partition {
 public:
  // The elements of `whole` in chunk_count parts that differ by one cut at most. With fewer cuts
  // than parts, the last parts are empty; nothing is sent for those.
  static constexpr Partition split(Range whole, std::size_t element_bytes, int chunk_count) {
    CATENARY_ASSERT(element_bytes > 0 && chunk_count > 0);
    Partition partition;
    partition.element_bytes_ = element_bytes;
    partition.begin_ = whole.offset;
    partition.end_ = whole.offset + whole.count;
    partition.longest_ = whole.count;
    partition.stride_ = whole.count;
    if (chunk_count == 1) return partition;
    const std::size_t unit = cut_elements(element_bytes);
    const std::size_t units = divide_up_quickly(whole.count, unit);
    const auto parts = static_cast<std::size_t>(chunk_count);
    const std::size_t units_per_part = divide_down_quickly(units, parts);
    partition.stride_ = units_per_part * unit;
    partition.longer_chunks_ = units - units_per_part * parts;
    partition.unit_ = unit;
    return partition;
  }
  static constexpr Partition split(std::size_t count, std::size_t element_bytes, int chunk_count) {
    return split(Range{0, count}, element_bytes, chunk_count);
  }

  // A part of `count` elements for each rank, one after the other; chunk i is `within` of part i.
  // The shorter buffer, where there is one, is chunk 0.
  static constexpr Partition per_rank(std::size_t count, Range within, std::size_t element_bytes,
                                      int chunk_count) {
    CATENARY_ASSERT(element_bytes > 0 && chunk_count > 0);
    Partition partition;
    partition.element_bytes_ = element_bytes;
    partition.stride_ = count;
    partition.begin_ = within.offset;
    partition.longest_ = within.count;
    partition.end_ = count * static_cast<std::size_t>(chunk_count);
    return partition;
  }

  // Parts that the caller lays out, and keeps where they are: what a lane moves of each.
  static Partition uneven(const UnevenParts& parts, std::size_t element_bytes, int lane = 0,
                          int lanes = 1) {
    Partition partition;
    partition.element_bytes_ = element_bytes;
    partition.uneven_ = &parts;
    partition.lane_ = lane;
    partition.lanes_ = lanes;
    for (const std::vector<Range>* side : {&parts.input, &parts.output}) {
      for (const Range& part : *side) {
        partition.longest_ = std::max(partition.longest_, partition.lane_of(part).count);
      }
    }
    return partition;
  }

  constexpr std::size_t element_bytes() const { return element_bytes_; }

  // Where an input or output chunk lies; how long one of scratch or carry is.
  constexpr Range chunk(const Chunk& chunk) const {
    return uneven_ == nullptr ? this->chunk(chunk.index) : uneven_chunk(chunk);
  }

  constexpr Range chunk(int index) const {
    const std::size_t begin = boundary(static_cast<std::size_t>(index));
    return {begin, std::min(boundary(static_cast<std::size_t>(index) + 1) - begin, longest_)};
  }

  // Elements in the longest chunk: the first, unless parts are uneven.
  constexpr std::size_t longest_chunk() const {
    return uneven_ == nullptr ? chunk(0).count : longest_;
  }

 private:
  // Scratch and carry have the lengths of the buffer with more parts.
  constexpr Range uneven_chunk(const Chunk& chunk) const {
    const bool is_private = chunk.buffer != Buffer::kInput && chunk.buffer != Buffer::kOutput;
    const bool in_input = is_private ? uneven_->input.size() > uneven_->output.size()
                                     : chunk.buffer == Buffer::kInput;
    const std::vector<Range>& side = in_input ? uneven_->input : uneven_->output;
    return lane_of(side[static_cast<std::size_t>(chunk.index)]);
  }

  constexpr Range lane_of(const Range& part) const {
    const Range mine = lane_range(part.count, element_bytes_, lane_, lanes_);
    return {part.offset + mine.offset, mine.count};
  }

  constexpr std::size_t boundary(std::size_t index) const {
    return std::min(begin_ + index * stride_ + std::min(index, longer_chunks_) * unit_, end_);
  }

  std::size_t element_bytes_ = 1;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::size_t stride_ = 0;         // from one chunk to the next, in elements
  std::size_t longest_ = 0;        // no chunk is longer
  std::size_t longer_chunks_ = 0;  // so many of the first chunks are one unit longer
  std::size_t unit_ = 0;
  const UnevenParts* uneven_ = nullptr;  // not null: lays out the parts, and lanes cut each
  int lane_ = 0;
  int lanes_ = 1;
};

constexpr Range lane_range(std::size_t count, std::size_t element_bytes, int lane, int lanes) {
  if (lanes == 1) return {0, count};
  return Partition::split(count, element_bytes, lanes).chunk(lane);
}

// The partition that a collective's own meaning of `count` asks for (NCCL's: what one rank gives or
// gets where the longer buffer holds a part per rank, otherwise all of it), for one of its lanes.
constexpr Partition partition_for(Collective collective, std::size_t count,
                                  std::size_t element_bytes, int chunk_count, int lane = 0,
                                  int lanes = 1) {
  const Range range = lane_range(count, element_bytes, lane, lanes);
  return holds_part_per_rank(collective)
             ? Partition::per_rank(count, range, element_bytes, chunk_count)
             : Partition::split(range, element_bytes, chunk_count);
}

// Passes and slices of a partition's chunks.
class Slicing {
 public:
  // slice_bytes: the most that one slice may hold, at most a slot's payload and at least one
  // element. slices: the most of a chunk that move in a pass; fewer than a link has slots.
  constexpr Slicing(const Partition& partition, std::size_t slice_bytes, std::uint32_t slices)
      : partition_(partition), slice_(elements_in(slice_bytes, partition.element_bytes())) {
    CATENARY_ASSERT(slices >= 1 && slice_ > 0);
    pass_ = slice_ * slices;
  }

  constexpr const Partition& partition() const { return partition_; }

  // How many messages of a chunk each a link surely holds: see Place.window. Where all chunks are
  // one slice, as many as that of a long chunk; otherwise one long chunk.
  constexpr int window() const {
    return partition_.longest_chunk() <= slice_
               ? static_cast<int>(divide_down_quickly(pass_, slice_))
               : 1;
  }

  // 0 if there is nothing to move.
  constexpr std::size_t passes() const { return pieces(partition_.longest_chunk(), pass_); }

  // What of a chunk moves in a pass. Empty for a short chunk in a late pass.
  constexpr Range part(int chunk, std::size_t pass) const {
    return part_of(partition_.chunk(chunk), pass);
  }
  constexpr Range part(const Chunk& chunk, std::size_t pass) const {
    return part_of(partition_.chunk(chunk), pass);
  }

  // Elements in the longest part that moves in a pass.
  constexpr std::size_t longest_part() const { return std::min(partition_.longest_chunk(), pass_); }

  // How many slices a part moves in, 0 if it is empty.
  constexpr std::size_t slices(const Range& part) const { return pieces(part.count, slice_); }

  constexpr Range slice(const Range& part, std::size_t index) const {
    const std::size_t done = index * slice_;
    return {part.offset + done, std::min(slice_, part.count - done)};
  }

 private:
  constexpr Range part_of(const Range& whole, std::size_t pass) const {
    const std::size_t done = std::min(pass * pass_, whole.count);
    return {whole.offset + done, std::min(pass_, whole.count - done)};
  }

  static constexpr std::size_t elements_in(std::size_t bytes, std::size_t element_bytes) {
    const std::size_t unit = cut_elements(element_bytes);
    const std::size_t count = divide_down_quickly(bytes, element_bytes);
    return count >= unit ? divide_down_quickly(count, unit) * unit : count;
  }

  // Most messages are one piece: spare them the division.
  static constexpr std::size_t pieces(std::size_t count, std::size_t piece) {
    return count <= piece ? (count == 0 ? 0 : 1) : divide_up_quickly(count, piece);
  }

  Partition partition_;
  std::size_t slice_;     // elements
  std::size_t pass_ = 0;  // elements of a chunk that move in one pass
};

}  // namespace catenary
