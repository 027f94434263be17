// The checker is only worth what it catches: changes every step of right schedules, one at a time,
// in every way that could be a slip. Each mutant is found wrong, or is proved here to mean the same
// as the right schedule.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/base/error.h"
#include "src/base/rounding.h"
#include "src/proof/survey.h"
#include "tests/proof/written_out.h"

namespace catenary::proof {
namespace {

// Two pieces of memory of a rank that may be one where it works in place.
bool overlaps(const ProofCase& which, int rank, const Chunk& one, const Chunk& other) {
  if (!one || !other) return false;
  if (one == other) return true;
  const bool in_out = one.buffer == Buffer::kInput && other.buffer == Buffer::kOutput;
  const bool out_in = one.buffer == Buffer::kOutput && other.buffer == Buffer::kInput;
  if (!in_out && !out_in) return false;
  const int input_index = in_out ? one.index : other.index;
  const int output_index = in_out ? other.index : one.index;
  if (gathers(which.collective)) return output_index == rank;
  if (scatters(which.collective)) return input_index == rank;
  return input_index == output_index;
}

bool is_in_fold(const Step& step) {
  return step.src.buffer == Buffer::kCarry || step.dst.buffer == Buffer::kCarry;
}

// Whether two steps of a rank do the same to memory and to links in either order. (Whether the
// other order deadlocks is for the checker to say.)
bool commute(const ProofCase& which, int rank, const Step& one, const Step& other) {
  const auto is_same_peer = [](int a, int b) { return a == b && a != kNobody; };
  if (is_same_peer(one.recv_from, other.recv_from)) return false;
  if (is_same_peer(one.send_to, other.send_to)) return false;
  if (is_in_fold(one) || is_in_fold(other)) return false;
  return !overlaps(which, rank, one.dst, other.src) && !overlaps(which, rank, one.dst, other.dst) &&
         !overlaps(which, rank, one.src, other.dst);
}

// Whether doing the step once more changes nothing.
bool is_idempotent(const Step& step) {
  return step.recv_from == kNobody && step.send_to == kNobody &&
         step.dst.buffer == Buffer::kScratch && step.src != step.dst;
}

// What a chunk holds when a step begins, followed back through plain copies: the chunk it was
// copied from, and the step after which it has been so there; the last step that wrote it,
// otherwise.
std::pair<Chunk, std::size_t> origin(const Schedule& schedule, std::size_t at, Chunk chunk) {
  while (at > 0) {
    const Step& earlier = schedule.steps[--at];
    if (earlier.dst != chunk) continue;
    if (earlier.recv_from != kNobody) return {chunk, at + 1};
    chunk = earlier.src;
  }
  return {chunk, 0};
}

// Whether two chunks hold the same when a step reads one of them, for being copies.
bool holds_same(const Schedule& schedule, std::size_t at, const Chunk& one, const Chunk& other) {
  const auto was = origin(schedule, at, one);
  return was.first.buffer != Buffer::kCarry && was == origin(schedule, at, other);
}

bool is_reduction(const Step& step) { return step.recv_from != kNobody && step.src; }

struct Mutant {
  const char* what;
  std::vector<Step> steps;
  bool means_the_same = false;  // proved without the checker
};

// All mutants of a step.
class Mutants {
 public:
  // `most_scratch`: so many scratch chunks are declared.
  Mutants(const ProofCase& which, int rank, const Schedule& schedule, std::size_t at,
          int most_scratch)
      : which_(which),
        right_(schedule),
        at_(at),
        step_(schedule.steps[at]),
        most_scratch_(most_scratch) {
    const auto place = static_cast<std::ptrdiff_t>(at);
    std::vector<Step> steps = right_.steps;
    steps.erase(steps.begin() + place);
    all_.push_back({"left out", std::move(steps)});
    steps = right_.steps;
    steps.insert(steps.begin() + place, step_);
    all_.push_back({"done twice", std::move(steps), is_idempotent(step_)});
    if (at + 1 < right_.steps.size()) {
      steps = right_.steps;
      const bool same = commute(which, rank, steps[at], steps[at + 1]);
      std::swap(steps[at], steps[at + 1]);
      all_.push_back({"swapped with the next", std::move(steps), same});
    }
    redirect_peers();
    redirect_chunk("src", &Step::src);
    redirect_chunk("dst", &Step::dst);
    Step flipped = step_;
    flipped.received_first = !flipped.received_first;
    add("the other operand first", flipped, !is_reduction(step_));
    use_more_scratch();
  }

  const std::vector<Mutant>& all() const { return all_; }

 private:
  void add(const char* what, const Step& step, bool means_the_same = false) {
    if (step == step_) return;
    std::vector<Step> steps = right_.steps;
    steps[at_] = step;
    all_.push_back({what, std::move(steps), means_the_same});
  }

  void redirect_peers() {
    for (int peer = kNobody; peer < which_.ranks; ++peer) {
      Step step = step_;
      step.send_to = peer;
      add("sent to another peer", step);
      step = step_;
      step.recv_from = peer;
      add("received from another peer", step, false);
    }
  }

  void redirect_chunk(const char* what, Chunk Step::*field) {
    Step step = step_;
    step.*field = {};
    add(what, step);
    const Chunk chunk = step_.*field;
    if (!chunk) return;
    const auto redirect = [&](const Chunk& wrong) {
      (step.*field) = wrong;
      add(what, step, field == &Step::src && holds_same(right_, at_, chunk, wrong));
    };
    for (const int index : {chunk.index + 1, chunk.index - 1, 0}) redirect({chunk.buffer, index});
    for (const Buffer buffer :
         {Buffer::kInput, Buffer::kOutput, Buffer::kScratch, Buffer::kCarry}) {
      redirect({buffer, chunk.index});
    }
  }

  // The first chunk beyond what is declared, as long as another one.
  Chunk beyond(const Chunk& chunk) const {
    const int parts = right_.chunk_count;
    const int part = chunk.index % parts;
    return scratch(part + round_up(most_scratch_ - part, parts));
  }

  // All is done as it should be, but in memory that nobody knew to be needed.
  void use_more_scratch() {
    const Chunk source = step_.src;
    if (source && source.buffer != Buffer::kCarry) {
      std::vector<Step> steps = right_.steps;
      steps.insert(steps.begin() + static_cast<std::ptrdiff_t>(at_),
                   {.src = source, .dst = beyond(source)});
      all_.push_back({"preceded by a copy to more scratch", std::move(steps)});
    }
    if (step_.dst.buffer != Buffer::kScratch) return;
    std::vector<Step> steps = right_.steps;
    for (Step& step : steps) {
      if (step.src == step_.dst) step.src = beyond(step_.dst);
      if (step.dst == step_.dst) step.dst = beyond(step_.dst);
    }
    all_.push_back({"kept in more scratch", std::move(steps)});
  }

  const ProofCase& which_;
  const Schedule& right_;
  const std::size_t at_;
  const Step& step_;
  const int most_scratch_;
  std::vector<Mutant> all_;
};

std::string text_of(const Chunk& chunk) {
  constexpr const char* kNames[] = {"-", "input", "output", "scratch", "carry"};
  return format("%s(%d)", kNames[static_cast<int>(chunk.buffer)], chunk.index);
}

std::string text_of(const Step& step) {
  return format("recv %d, %s -> %s, send %d%s", step.recv_from, text_of(step.src).c_str(),
                text_of(step.dst).c_str(), step.send_to,
                step.received_first ? ", received first" : "");
}

class EveryStep : public testing::TestWithParam<Algorithm> {
 protected:
  struct Counts {
    int caught = 0;
    int same = 0;
  };

  // Must be noticed in each of them: messages of several slices in several passes of unequal
  // length, messages of one slice, and, where steps depend on it, several of these under way.
  static std::vector<Cut> cuts(int chunks) {
    const int parts_a_lane = holds_part_per_rank(GetParam().collective) ? 1 : chunks;
    const auto parts = static_cast<std::size_t>(parts_a_lane * GetParam().lanes);
    std::vector<Cut> all = {{2, parts}, {3, 4 * parts - (parts + 1) / 2}};
    if (GetParam().sends_ahead) all.insert(all.end(), {{5, parts}, {16, parts}});
    return all;
  }

  void expect_all_noticed(ProofCase which) {
    const Algorithm& algorithm = GetParam();
    const int chunks = algorithm.chunks(place_of(which, 0));
    for (const Cut& cut : cuts(chunks)) {
      which.slots = cut.slots;
      which.count = cut.count;
      expect_noticed(which, written_out(algorithm, which));
    }
  }

  void expect_noticed(const ProofCase& which, const Schedules& right) {
    Orders orders;
    Schedules tried = right;
    const int most_scratch = source_of(GetParam(), which).scratch(place_of(which, 0));
    const StepSource source = source_of(tried, most_scratch);
    ASSERT_EQ(checker_.check(which, source, orders).fault, "") << describe(which);
    for (int rank = 0; rank < which.ranks; ++rank) {
      const auto index = static_cast<std::size_t>(rank);
      for (std::size_t at = 0; at < right[index].steps.size(); ++at) {
        const Mutants mutants(which, rank, right[index], at, most_scratch);
        for (const Mutant& mutant : mutants.all()) {
          if (mutant.steps == right[index].steps) continue;
          tried[index].steps = mutant.steps;
          const bool caught = !checker_.check(which, source, orders).fault.empty();
          ++(caught ? counts_.caught : counts_.same);
          EXPECT_TRUE(caught || mutant.means_the_same)
              << describe(which) << ": nobody notices that step " << at << " of rank " << rank
              << " (" << text_of(right[index].steps[at]) << ") is " << mutant.what << " ("
              << text_of(mutant.steps[std::min(at, mutant.steps.size() - 1)]) << ")";
        }
      }
      tried[index] = right[index];
    }
  }

  Checker checker_;
  Counts counts_;
};

TEST_P(EveryStep, is_needed_as_it_is) {
  const Algorithm& algorithm = GetParam();
  // Of pairs there are many. With boxes of four they have scratch inside, if they ever do; one of
  // the pairs that have the same inside does for that.
  const bool is_rare = !algorithm.chosen_by_cost;
  const bool is_plain_across =
      algorithm.across == "ring" || algorithm.across == "chain" || algorithm.across == "pairwise";
  for (const int ranks : is_rare ? std::vector{4, 6, 8} : std::vector{2, 3, 4, 5, 6, 8}) {
    for (int box = 1; box <= ranks; ++box) {
      ProofCase which{.collective = algorithm.collective,
                      .ranks = ranks,
                      .root = ranks / 2,
                      .receiver = ranks - 1,
                      .box = box,
                      .lanes = algorithm.lanes};
      if (ranks % box != 0 || !runs_on(algorithm, which)) continue;
      if (is_rare && ranks == 8 && (box != 4 || !is_plain_across)) continue;
      for (which.lane = 0; which.lane < which.lanes; ++which.lane) expect_all_noticed(which);
      if (!looks_at_box(algorithm)) break;
    }
  }
  std::cout << counts_.caught << " mutants caught, " << counts_.same << " mean the same\n";
}

INSTANTIATE_TEST_SUITE_P(Table, EveryStep,
                         testing::ValuesIn(algorithms().begin(), algorithms().end()),
                         [](const auto& which) {
                           return std::string(name_of(which.param.collective)) + "_" +
                                  std::string(which.param.name);
                         });

}  // namespace
}  // namespace catenary::proof
