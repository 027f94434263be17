#include "src/collective/algorithms/hierarchical.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <span>
#include <vector>

#include "src/base/error.h"

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

// And of its chunks: chunk i of a buffer is chunk first + i * stride of another one; and where the
// same is done over and over (Repeated), it is `shift` further on each time.
struct Run {
  Chunk first;
  int stride;
  int shift = 0;
};
// By the group's buffer, so that nothing is asked. No chunk is none, and carries keep the numbers
// of scratch: all that counts is their length.
struct Chunks {
  std::array<Run, kBufferKinds> runs;

  Chunks(const Run& input, const Run& output, const Run& scratch)
      : runs{Run{}, input, output, scratch, scratch} {
    run_of(carry(0)).first.buffer = Buffer::kCarry;
  }
  Chunk chunk_of(const Chunk& chunk) const {
    const Run& run = run_of(chunk);
    return {run.first.buffer, run.first.index + chunk.index * run.stride};
  }
  const Run& run_of(const Chunk& chunk) const {
    return runs[static_cast<std::size_t>(chunk.buffer)];
  }
  Run& run_of(const Chunk& chunk) { return runs[static_cast<std::size_t>(chunk.buffer)]; }
};

// A group's steps as steps of all ranks.
struct Embedding {
  Ranks ranks;
  Chunks chunks;

  // What would be copied to where it is already is not.
  Step of(const Step& step) const {
    Step all{.recv_from = ranks.rank_of(step.recv_from),
             .src = chunks.chunk_of(step.src),
             .dst = chunks.chunk_of(step.dst),
             .send_to = ranks.rank_of(step.send_to),
             .received_first = step.received_first};
    if (all.recv_from == kNobody && all.src == all.dst) all.dst = {};
    return all;
  }
};

// What both levels cut a whole message into: chunk c of the level inside is chunks
// [c * parts, (c + 1) * parts), one for each part that goes across.
struct WholeCut {
  int chunks;  // inside
  int parts;   // of each
  int count() const { return chunks * parts; }
};
WholeCut whole_cut(const Place& at, const Stages& stages) {
  return {stages.chunks_inside(inside(at)), stages.chunks_across(across(at))};
}

// How the ranks of a box give each other their finished shards, part by part.
Embedding gathered_shards(const Place& at, int parts) {
  const int own = at.rank % at.box * parts;
  return {ranks_inside(at), {{output(own), 0, 1}, {output(0), parts, 1}, {scratch(0), parts, 1}}};
}

bool does_nothing(const Step& step) { return !step.dst && step.send_to == kNobody; }

// A group's steps that do something, as steps of all ranks.
Steps embedded(Embedding embedding, Steps steps) {
  for (const Step& step : steps) {
    const Step all = embedding.of(step);
    if (!does_nothing(all)) co_yield all;
  }
}

struct ShiftingStep {
  Step step;
  int src_shift;
  int dst_shift;
};

// What a group does so many times, written down once: nothing but the chunks differs. The steps
// must come to an end, which the proof of what has them alone, or of its like with even chunks,
// shows.
class Repeated {
 public:
  Repeated(int times, const Embedding& first_time, Steps steps) : times_(times) {
    for (const Step& step : steps) {
      const Step all = first_time.of(step);
      const int src_shift = first_time.chunks.run_of(step.src).shift;
      const int dst_shift = first_time.chunks.run_of(step.dst).shift;
      const bool is_copy_spared = step.dst && !all.dst;
      CATENARY_ASSERT(!is_copy_spared || src_shift == dst_shift);  // and so is it each time
      if (does_nothing(all)) continue;
      steps_.push_back({all, src_shift, is_copy_spared ? 0 : dst_shift});
    }
  }

  // No coroutine, since nearly every step of a pair goes through here.
  class Iterator {
   public:
    Iterator(std::span<ShiftingStep> steps, int times)
        : steps_(steps), at_(steps.data()), times_left_(steps.empty() ? 0 : times) {}
    const Step& operator*() const { return at_->step; }
    Iterator& operator++() {
      at_->step.src.index += at_->src_shift;
      at_->step.dst.index += at_->dst_shift;
      if (++at_ == steps_.data() + steps_.size()) {
        at_ = steps_.data();
        --times_left_;
      }
      return *this;
    }
    bool operator==(std::default_sentinel_t) const { return times_left_ == 0; }

   private:
    std::span<ShiftingStep> steps_;
    ShiftingStep* at_;
    int times_left_;
  };
  Iterator begin() { return Iterator(steps_, times_); }  // once: steps stay shifted
  std::default_sentinel_t end() const { return {}; }

 private:
  int times_;
  std::vector<ShiftingStep> steps_;
};

// One rank of a box has the whole message, and broadcasts it to the others.
Steps given_inside(Place at, StepsOf broadcast, WholeCut cut) {
  const Run part{output(0), cut.parts, 1};
  Repeated give(cut.parts, {ranks_inside(at), {part, part, {scratch(0), cut.parts, 1}}},
                broadcast(inside(at)));
  for (const Step& step : give) co_yield step;
}

}  // namespace

int chunks_of_ranks(const Place& at, const Stages& /*stages*/) { return at.ranks; }

int chunks_of_shards(const Place& at, const Stages& stages) {
  return in_boxes(at) ? at.box * stages.chunks_across(across(at)) : 1;
}

// Behind what goes from stage to stage. A scratch chunk must be as long as what it holds: inside it
// lies at its shard's number, and across it lies where the shard does, at the rank with the last
// shard behind those of all others.
int broadcast_scratch(const Place& at, const Stages& stages) {
  if (!in_boxes(at)) return 0;
  const int parts = stages.chunks_across(across(at));
  const int of_shard = stages.scratch_across(across(at));
  return std::max(parts * stages.scratch_inside(inside(at)),
                  of_shard > 0 ? (at.box - 1) * parts + of_shard : 0);
}

int all_reduce_scratch(const Place& at, const Stages& stages) {
  return in_boxes(at) ? chunks_of_shards(at, stages) + broadcast_scratch(at, stages) : 0;
}

int chunks_of_whole(const Place& at, const Stages& stages) {
  return in_boxes(at) ? whole_cut(at, stages).count() : 1;
}

// Each level's lies at the number of the part, or the chunk, that it works on.
int broadcast_whole_scratch(const Place& at, const Stages& stages) {
  if (!in_boxes(at)) return 0;
  const WholeCut cut = whole_cut(at, stages);
  const int of_chunk = stages.scratch_across(across(at));
  return std::max(cut.parts * stages.scratch_inside(inside(at)),
                  of_chunk > 0 ? (cut.chunks - 1) * cut.parts + of_chunk : 0);
}

int all_reduce_whole_scratch(const Place& at, const Stages& stages) {
  return in_boxes(at) ? chunks_of_whole(at, stages) + broadcast_whole_scratch(at, stages) : 0;
}

int all_gather_scratch(const Place& at, const Stages& stages) {
  if (!in_boxes(at)) return 0;
  return std::max(stages.scratch_inside(inside(at)), stages.scratch_across(across(at)));
}

int reduce_scatter_scratch(const Place& at, const Stages& stages) {
  return in_boxes(at) ? at.ranks / at.box + all_gather_scratch(at, stages) : 0;
}

int all_to_all_scratch(const Place& at, const Stages& stages) {
  return in_boxes(at) ? at.ranks + all_gather_scratch(at, stages) : 0;
}

// Shard s is chunks [s * parts, (s + 1) * parts), and belongs to place s of each box. Inside of a
// box, one part of each shard moves at a time, so that links hold what is under way.
Steps hierarchical_all_reduce(Place at, Stages stages) {
  const int parts = stages.chunks_across(across(at));
  const int chunks = at.box * parts;
  const int own = at.rank % at.box * parts;
  Repeated sums_of_box(
      parts,
      {ranks_inside(at), {{input(0), parts, 1}, {scratch(own), 0, 1}, {scratch(chunks), parts, 1}}},
      stages.scatter(inside(at)));
  for (const Step& step : sums_of_box) co_yield step;
  const Embedding sums_of_all{ranks_across(at),
                              {{scratch(own), 1}, {output(own), 1}, {scratch(chunks + own), 1}}};
  for (const Step& step : embedded(sums_of_all, stages.across(across(at)))) co_yield step;
  Repeated shards(parts, gathered_shards(at, parts), stages.gather(inside(at)));
  for (const Step& step : shards) co_yield step;
}

Steps hierarchical_broadcast(Place at, Stages stages) {
  const int parts = stages.chunks_across(across(at));
  const int own = at.rank % at.box * parts;
  const bool has_message = at.rank / at.box == at.root / at.box;
  if (has_message) {
    Repeated scattered(
        parts,
        {ranks_inside(at), {{input(0), parts, 1}, {output(own), 0, 1}, {scratch(0), parts, 1}}},
        stages.scatter(inside(at)));
    for (const Step& step : scattered) co_yield step;
  }
  const Embedding shard{ranks_across(at), {{output(own), 1}, {output(own), 1}, {scratch(own), 1}}};
  for (const Step& step : embedded(shard, stages.across(across(at)))) co_yield step;
  Repeated shards(parts, gathered_shards(at, parts), stages.gather(inside(at)));
  for (const Step& step : shards) co_yield step;
}

// A level's schedule runs once for each part that only the other level cuts.
Steps hierarchical_all_reduce_whole(Place at, Stages stages) {
  const WholeCut cut = whole_cut(at, stages);
  const bool one_for_all = stages.gather != nullptr;
  Repeated sums_of_box(cut.parts,
                       {ranks_inside(at),
                        {{input(0), cut.parts, 1},
                         {scratch(0), cut.parts, 1},
                         {scratch(cut.count()), cut.parts, 1}}},
                       stages.scatter(inside(at)));
  for (const Step& step : sums_of_box) co_yield step;
  if (!one_for_all || at.rank % at.box == at.root % at.box) {
    Repeated sums_of_all(cut.chunks,
                         {ranks_across(at),
                          {{scratch(0), 1, cut.parts},
                           {output(0), 1, cut.parts},
                           {scratch(cut.count()), 1, cut.parts}}},
                         stages.across(across(at)));
    for (const Step& step : sums_of_all) co_yield step;
  }
  if (!one_for_all) co_return;
  for (const Step& step : given_inside(at, stages.gather, cut)) co_yield step;
}

Steps hierarchical_broadcast_whole(Place at, Stages stages) {
  const WholeCut cut = whole_cut(at, stages);
  if (at.rank % at.box == at.root % at.box) {
    Repeated to_boxes(
        cut.chunks,
        {ranks_across(at),
         {{input(0), 1, cut.parts}, {output(0), 1, cut.parts}, {scratch(0), 1, cut.parts}}},
        stages.across(across(at)));
    for (const Step& step : to_boxes) co_yield step;
  }
  for (const Step& step : given_inside(at, stages.gather, cut)) co_yield step;
}

// First what the ranks of one place give, then, of each box, what its ranks give.
Steps hierarchical_all_gather(Place at, Stages stages) {
  const int place = at.rank % at.box;
  const Embedding of_place{ranks_across(at),
                           {{input(0), 0}, {output(place), at.box}, {scratch(0), 1}}};
  for (const Step& step : embedded(of_place, stages.across(across(at)))) co_yield step;
  Repeated of_box(
      at.ranks / at.box,
      {ranks_inside(at), {{output(place), 0, at.box}, {output(0), 1, at.box}, {scratch(0), 1}}},
      stages.gather(inside(at)));
  for (const Step& step : of_box) co_yield step;
}

// The box's sums of what each box gets at this place, and then those of all.
Steps hierarchical_reduce_scatter(Place at, Stages stages) {
  const int boxes = at.ranks / at.box;
  Repeated to_box(
      boxes, {ranks_inside(at), {{input(0), 1, at.box}, {scratch(0), 0, 1}, {scratch(boxes), 1}}},
      stages.scatter(inside(at)));
  for (const Step& step : to_box) co_yield step;
  const Embedding of_place{ranks_across(at),
                           {{scratch(0), 1}, {output(0), 0}, {scratch(boxes), 1}}};
  for (const Step& step : embedded(of_place, stages.across(across(at)))) co_yield step;
}

// What the ranks of this box have for this place of each box; and then, from each place of the
// others, what they have for this rank.
Steps hierarchical_all_to_all(Place at, Stages stages) {
  Repeated to_box(
      at.ranks / at.box,
      {ranks_inside(at), {{input(0), 1, at.box}, {scratch(0), 1, at.box}, {scratch(at.ranks), 1}}},
      stages.scatter(inside(at)));
  for (const Step& step : to_box) co_yield step;
  Repeated from_place(
      at.box,
      {ranks_across(at), {{scratch(0), at.box, 1}, {output(0), at.box, 1}, {scratch(at.ranks), 1}}},
      stages.across(across(at)));
  for (const Step& step : from_place) co_yield step;
}

}  // namespace catenary
