#include "src/collective/hierarchical.h"

#include <utility>

namespace catenary {
namespace {

// Rank = box * ranks of a box + place in the box.
Place inside(const Place& at) {
  return {.rank = at.rank % at.box,
          .ranks = at.box,
          .root = at.root % at.box,
          .lane = at.lane,
          .window = at.window};
}
Place across(const Place& at) {
  return {.rank = at.rank / at.box,
          .ranks = at.ranks / at.box,
          .root = at.root / at.box,
          .lane = at.lane,
          .window = at.window};
}

// What becomes of a group's ranks: peer p is rank first + p * stride.
struct Ranks {
  int first;
  int stride;
  int rank_of(int peer) const { return peer == kNobody ? kNobody : first + peer * stride; }
};
Ranks ranks_inside(const Place& at) { return {at.rank / at.box * at.box, 1}; }
Ranks ranks_across(const Place& at) { return {at.rank % at.box, at.box}; }

// And of its chunks: chunk i of a buffer is chunk first + i * stride of another one. Carries keep
// the numbers of scratch: all that counts is their length.
struct Run {
  Chunk first;
  int stride;
};
struct Chunks {
  Run input;
  Run output;
  Run scratch;

  Chunk chunk_of(const Chunk& chunk) const {
    if (!chunk) return {};
    const Run& run = chunk.buffer == Buffer::kInput    ? input
                     : chunk.buffer == Buffer::kOutput ? output
                                                       : scratch;
    const Buffer buffer = chunk.buffer == Buffer::kCarry ? Buffer::kCarry : run.first.buffer;
    return {buffer, run.first.index + chunk.index * run.stride};
  }
};

// A group's steps as steps of all ranks. What would be copied to where it is already is not.
Steps embedded(Steps steps, Ranks ranks, Chunks chunks) {
  for (Step step : steps) {
    step.recv_from = ranks.rank_of(step.recv_from);
    step.send_to = ranks.rank_of(step.send_to);
    step.src = chunks.chunk_of(step.src);
    step.dst = chunks.chunk_of(step.dst);
    const bool is_there = step.recv_from == kNobody && step.src == step.dst;
    if (is_there) step.dst = {};
    if (!is_there || step.send_to != kNobody) co_yield step;
  }
}

}  // namespace

int chunks_of_shards(const Place& at, ChunksOf outer) {
  return in_boxes(at) ? at.box * outer(across(at)) : 1;
}

// A shard's scratch across lies where the shard does.
int all_reduce_scratch_of(const Place& at, ChunksOf chunks_across, ChunksOf scratch_across) {
  if (!in_boxes(at)) return 0;
  const int parts = chunks_across(across(at));
  const int of_shard = scratch_across(across(at));
  return at.box * parts + (of_shard > 0 ? (at.box - 1) * parts + of_shard : 0);
}

int reduce_scatter_scratch_of(const Place& at, ChunksOf scratch_across) {
  return in_boxes(at) ? at.ranks / at.box + scratch_across(across(at)) : 0;
}

int all_to_all_scratch_of(const Place& at, ChunksOf scratch_across) {
  return in_boxes(at) ? at.ranks + scratch_across(across(at)) : 0;
}

// Shard s is chunks [s * parts, (s + 1) * parts), and belongs to place s of each box. Inside of a
// box, one part of each shard moves at a time, so that links hold what is under way.
Steps hierarchical_all_reduce(Place at, ShardStages stages) {
  const int parts = stages.chunks(across(at));
  const int chunks = at.box * parts;
  const int own = at.rank % at.box * parts;
  for (int part = 0; part < parts; ++part) {
    const Chunks sums_of_box{
        {input(part), parts}, {scratch(own + part), 0}, {scratch(chunks + part), parts}};
    for (const Step& step : embedded(stages.scatter(inside(at)), ranks_inside(at), sums_of_box)) {
      co_yield step;
    }
  }
  const Chunks sums_of_all{{scratch(own), 1}, {output(own), 1}, {scratch(chunks + own), 1}};
  for (const Step& step : embedded(stages.across(across(at)), ranks_across(at), sums_of_all)) {
    co_yield step;
  }
  for (int part = 0; part < parts; ++part) {
    const Chunks shards{{output(own + part), 0}, {output(part), parts}, {scratch(part), parts}};
    for (const Step& step : embedded(stages.gather(inside(at)), ranks_inside(at), shards)) {
      co_yield step;
    }
  }
}

Steps hierarchical_broadcast(Place at, ShardStages stages) {
  const int parts = stages.chunks(across(at));
  const int own = at.rank % at.box * parts;
  const bool has_message = at.rank / at.box == at.root / at.box;
  for (int part = 0; has_message && part < parts; ++part) {
    const Chunks shards{{input(part), parts}, {output(own + part), 0}, {scratch(part), parts}};
    for (const Step& step : embedded(stages.scatter(inside(at)), ranks_inside(at), shards)) {
      co_yield step;
    }
  }
  const Chunks shard{{output(own), 1}, {output(own), 1}, {scratch(own), 1}};
  for (const Step& step : embedded(stages.across(across(at)), ranks_across(at), shard)) {
    co_yield step;
  }
  for (int part = 0; part < parts; ++part) {
    const Chunks shards{{output(own + part), 0}, {output(part), parts}, {scratch(part), parts}};
    for (const Step& step : embedded(stages.gather(inside(at)), ranks_inside(at), shards)) {
      co_yield step;
    }
  }
}

// First what the ranks of one place give, then, of each box, what its ranks give.
Steps hierarchical_all_gather(Place at, PartStages stages) {
  const int place = at.rank % at.box;
  const Chunks of_place{{input(0), 0}, {output(place), at.box}, {scratch(0), 1}};
  for (const Step& step : embedded(stages.across(across(at)), ranks_across(at), of_place)) {
    co_yield step;
  }
  for (int first = 0; first < at.ranks; first += at.box) {
    const Chunks of_box{{output(first + place), 0}, {output(first), 1}, {scratch(0), 1}};
    for (const Step& step : embedded(stages.inside(inside(at)), ranks_inside(at), of_box)) {
      co_yield step;
    }
  }
}

// The box's sums of what each box gets at this place, and then those of all.
Steps hierarchical_reduce_scatter(Place at, PartStages stages) {
  const int boxes = at.ranks / at.box;
  for (int box = 0; box < boxes; ++box) {
    const Chunks of_box{{input(box * at.box), 1}, {scratch(box), 0}, {scratch(boxes), 1}};
    for (const Step& step : embedded(stages.inside(inside(at)), ranks_inside(at), of_box)) {
      co_yield step;
    }
  }
  const Chunks of_place{{scratch(0), 1}, {output(0), 0}, {scratch(boxes), 1}};
  for (const Step& step : embedded(stages.across(across(at)), ranks_across(at), of_place)) {
    co_yield step;
  }
}

// What the ranks of this box have for this place of each box; and then, from each place of the
// others, what they have for this rank.
Steps hierarchical_all_to_all(Place at, PartStages stages) {
  for (int first = 0; first < at.ranks; first += at.box) {
    const Chunks to_box{{input(first), 1}, {scratch(first), 1}, {scratch(at.ranks), 1}};
    for (const Step& step : embedded(stages.inside(inside(at)), ranks_inside(at), to_box)) {
      co_yield step;
    }
  }
  for (int place = 0; place < at.box; ++place) {
    const Chunks from_place{
        {scratch(place), at.box}, {output(place), at.box}, {scratch(at.ranks), 1}};
    for (const Step& step : embedded(stages.across(across(at)), ranks_across(at), from_place)) {
      co_yield step;
    }
  }
}

}  // namespace catenary
