#include "src/collective/algorithms/hierarchical.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <span>
#include <utility>
#include <vector>

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

// And of its chunks: chunk i of a buffer is chunk first + i * stride of another one.
struct Run {
  Chunk first;
  int stride;
};
// By the group's buffer, so that nothing is asked, as every chunk of a pair goes through here. No
// chunk is none, and carries keep the numbers of scratch: all that counts is their length.
struct Chunks {
  std::array<Run, kBufferKinds> runs;

  Chunks(const Run& input, const Run& output, const Run& scratch)
      : runs{Run{}, input, output, scratch, scratch} {
    runs[static_cast<std::size_t>(Buffer::kCarry)].first.buffer = Buffer::kCarry;
  }
  Chunk chunk_of(const Chunk& chunk) const {
    const Run& run = runs[static_cast<std::size_t>(chunk.buffer)];
    return {run.first.buffer, run.first.index + chunk.index * run.stride};
  }
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

// How the ranks of a box give each other the part of that number of their finished shards.
Embedding gathered_shards(const Place& at, int part, int parts) {
  const int own = at.rank % at.box * parts;
  return {ranks_inside(at),
          {{output(own + part), 0}, {output(part), parts}, {scratch(part), parts}}};
}

// What ranks inside of a box do over and over, written down once: nothing but the chunks differs.
// The stage must come to an end, which the proof of the algorithm that it is alone shows.
class Repeated {
 public:
  explicit Repeated(Steps steps) {
    for (const Step& step : steps) steps_.push_back(step);
  }

  // Its steps from the first on, as those of a generator.
  class Time {
   public:
    explicit Time(const std::vector<Step>& steps) : rest_(steps) {}
    const Step* next() {
      if (rest_.empty()) return nullptr;
      const Step* step = rest_.data();
      rest_ = rest_.subspan(1);
      return step;
    }

   private:
    std::span<const Step> rest_;
  };
  Time once() const { return Time(steps_); }

 private:
  std::vector<Step> steps_;
};

// All of a group's steps that do something as steps of all ranks. A range and no coroutine, since
// every step of a pair goes through here.
template <class Source>
class Embedded {
 public:
  Embedded(const Embedding& embedding, Source steps)
      : embedding_(embedding), steps_(std::move(steps)) {}

  class Iterator {
   public:
    explicit Iterator(Embedded& of) : of_(of) { ++*this; }
    const Step& operator*() const { return step_; }
    Iterator& operator++() {
      do {
        const Step* step = of_.steps_.next();
        is_over_ = step == nullptr;
        if (!is_over_) step_ = of_.embedding_.of(*step);
      } while (!is_over_ && !step_.dst && step_.send_to == kNobody);
      return *this;
    }
    bool operator==(std::default_sentinel_t) const { return is_over_; }

   private:
    Embedded& of_;
    Step step_;
    bool is_over_ = false;
  };
  Iterator begin() { return Iterator(*this); }
  std::default_sentinel_t end() const { return {}; }

 private:
  Embedding embedding_;
  Source steps_;
};

// One rank of a box has the whole message, and broadcasts it to the others.
Steps given_inside(Place at, StepsOf broadcast, WholeCut cut) {
  const Repeated give(broadcast(inside(at)));
  for (int part = 0; part < cut.parts; ++part) {
    const Embedding message{
        ranks_inside(at),
        {{output(part), cut.parts}, {output(part), cut.parts}, {scratch(part), cut.parts}}};
    for (const Step& step : Embedded(message, give.once())) co_yield step;
  }
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
  const Repeated scatter(stages.scatter(inside(at)));
  for (int part = 0; part < parts; ++part) {
    const Embedding sums_of_box{
        ranks_inside(at),
        {{input(part), parts}, {scratch(own + part), 0}, {scratch(chunks + part), parts}}};
    for (const Step& step : Embedded(sums_of_box, scatter.once())) co_yield step;
  }
  const Embedding sums_of_all{ranks_across(at),
                              {{scratch(own), 1}, {output(own), 1}, {scratch(chunks + own), 1}}};
  for (const Step& step : Embedded(sums_of_all, stages.across(across(at)))) co_yield step;
  const Repeated gather(stages.gather(inside(at)));
  for (int part = 0; part < parts; ++part) {
    const Embedding shards = gathered_shards(at, part, parts);
    for (const Step& step : Embedded(shards, gather.once())) co_yield step;
  }
}

Steps hierarchical_broadcast(Place at, Stages stages) {
  const int parts = stages.chunks_across(across(at));
  const int own = at.rank % at.box * parts;
  const bool has_message = at.rank / at.box == at.root / at.box;
  if (has_message) {
    const Repeated scatter(stages.scatter(inside(at)));
    for (int part = 0; part < parts; ++part) {
      const Embedding shards{
          ranks_inside(at),
          {{input(part), parts}, {output(own + part), 0}, {scratch(part), parts}}};
      for (const Step& step : Embedded(shards, scatter.once())) co_yield step;
    }
  }
  const Embedding shard{ranks_across(at), {{output(own), 1}, {output(own), 1}, {scratch(own), 1}}};
  for (const Step& step : Embedded(shard, stages.across(across(at)))) co_yield step;
  const Repeated gather(stages.gather(inside(at)));
  for (int part = 0; part < parts; ++part) {
    const Embedding shards = gathered_shards(at, part, parts);
    for (const Step& step : Embedded(shards, gather.once())) co_yield step;
  }
}

// A level's schedule runs once for each part that only the other level cuts.
Steps hierarchical_all_reduce_whole(Place at, Stages stages) {
  const WholeCut cut = whole_cut(at, stages);
  const bool one_for_all = stages.gather != nullptr;
  const Repeated sum(stages.scatter(inside(at)));
  for (int part = 0; part < cut.parts; ++part) {
    const Embedding sums_of_box{ranks_inside(at),
                                {{input(part), cut.parts},
                                 {scratch(part), cut.parts},
                                 {scratch(cut.count() + part), cut.parts}}};
    for (const Step& step : Embedded(sums_of_box, sum.once())) co_yield step;
  }
  if (!one_for_all || at.rank % at.box == at.root % at.box) {
    const Repeated sum_of_boxes(stages.across(across(at)));
    for (int first = 0; first < cut.count(); first += cut.parts) {
      const Embedding sums_of_all{
          ranks_across(at),
          {{scratch(first), 1}, {output(first), 1}, {scratch(cut.count() + first), 1}}};
      for (const Step& step : Embedded(sums_of_all, sum_of_boxes.once())) co_yield step;
    }
  }
  if (!one_for_all) co_return;
  for (const Step& step : given_inside(at, stages.gather, cut)) co_yield step;
}

Steps hierarchical_broadcast_whole(Place at, Stages stages) {
  const WholeCut cut = whole_cut(at, stages);
  if (at.rank % at.box == at.root % at.box) {
    const Repeated to_boxes(stages.across(across(at)));
    for (int first = 0; first < cut.count(); first += cut.parts) {
      const Embedding chunk{ranks_across(at),
                            {{input(first), 1}, {output(first), 1}, {scratch(first), 1}}};
      for (const Step& step : Embedded(chunk, to_boxes.once())) co_yield step;
    }
  }
  for (const Step& step : given_inside(at, stages.gather, cut)) co_yield step;
}

// First what the ranks of one place give, then, of each box, what its ranks give.
Steps hierarchical_all_gather(Place at, Stages stages) {
  const int place = at.rank % at.box;
  const Embedding of_place{ranks_across(at),
                           {{input(0), 0}, {output(place), at.box}, {scratch(0), 1}}};
  for (const Step& step : Embedded(of_place, stages.across(across(at)))) co_yield step;
  const Repeated gather(stages.gather(inside(at)));
  for (int first = 0; first < at.ranks; first += at.box) {
    const Embedding of_box{ranks_inside(at),
                           {{output(first + place), 0}, {output(first), 1}, {scratch(0), 1}}};
    for (const Step& step : Embedded(of_box, gather.once())) co_yield step;
  }
}

// The box's sums of what each box gets at this place, and then those of all.
Steps hierarchical_reduce_scatter(Place at, Stages stages) {
  const int boxes = at.ranks / at.box;
  const Repeated scatter(stages.scatter(inside(at)));
  for (int box = 0; box < boxes; ++box) {
    const Embedding of_box{ranks_inside(at),
                           {{input(box * at.box), 1}, {scratch(box), 0}, {scratch(boxes), 1}}};
    for (const Step& step : Embedded(of_box, scatter.once())) co_yield step;
  }
  const Embedding of_place{ranks_across(at),
                           {{scratch(0), 1}, {output(0), 0}, {scratch(boxes), 1}}};
  for (const Step& step : Embedded(of_place, stages.across(across(at)))) co_yield step;
}

// What the ranks of this box have for this place of each box; and then, from each place of the
// others, what they have for this rank.
Steps hierarchical_all_to_all(Place at, Stages stages) {
  const Repeated scatter(stages.scatter(inside(at)));
  for (int first = 0; first < at.ranks; first += at.box) {
    const Embedding to_box{ranks_inside(at),
                           {{input(first), 1}, {scratch(first), 1}, {scratch(at.ranks), 1}}};
    for (const Step& step : Embedded(to_box, scatter.once())) co_yield step;
  }
  for (int place = 0; place < at.box; ++place) {
    const Embedding from_place{
        ranks_across(at),
        {{scratch(place), at.box}, {output(place), at.box}, {scratch(at.ranks), 1}}};
    for (const Step& step : Embedded(from_place, stages.across(across(at)))) co_yield step;
  }
}

}  // namespace catenary
