// One setting in which the schedules of all ranks are checked together, and the few facts that
// follow from it. Values only.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "src/collective/algorithms.h"
#include "src/collective/operation.h"
#include "src/collective/partition.h"
#include "src/collective/schedule.h"

namespace catenary::proof {

struct ProofCase {
  Collective collective = Collective::kAllReduce;
  int ranks = 1;
  int root = 0;      // who sends, for Send and Recv
  int receiver = 0;  // for Send and Recv only
  int box = 1;
  int lane = 0;
  int lanes = 1;
  bool keeps_parts = false;       // what is one message or step must be one part: see keeps_parts()
  bool opens_links_only = false;  // links carry one message each: see opens_links_only()
  std::size_t count = 1;          // as the collective means it; an element fills a slot
  std::uint32_t slots = 2;        // of a link, as chunks are cut for
  std::uint32_t link_slots = 0;   // of a link really; 0: as many
};

// Whether it runs on such ranks.
bool runs_on(const Algorithm& algorithm, const ProofCase& which);

// Where steps come from: an algorithm, or what a test makes of one. Called again for every pass,
// for the same steps.
struct StepSource {
  std::function<Steps(const Place&)> steps;
  std::function<int(const Place&)> chunks;
  std::function<int(const Place&)> scratch;  // chunks, at most
};
// The algorithm must outlive it. With the window that the case's slots and count make, or another.
StepSource source_of(const Algorithm& algorithm, const ProofCase& which);
int window_of(const Algorithm& algorithm, const ProofCase& which);
StepSource source_with(const Algorithm& algorithm, const ProofCase& which, int window);

// No algorithm comes near so many steps of a rank: one that does has no end.
constexpr std::uint32_t most_steps(const ProofCase& which, int chunk_count) {
  return 64 * (static_cast<std::uint32_t>(std::max(chunk_count, which.ranks)) + 64);
}

// But for the window, which is the source's to know.
Place place_of(const ProofCase& which, int rank);
// Which part of all there are a chunk of a rank is, where ranks have parts; kNobody where nothing
// says so.
int label_of(const ProofCase& which, int rank, const Chunk& chunk);
// In elements as large as slots, so that a slice is one element.
Slicing slicing_of(const ProofCase& which, int chunk_count);

// "ring AllReduce, 4 ranks, ...": enough to check it again.
std::string describe(const ProofCase& which);

constexpr bool gathers(Collective collective) {
  return collective == Collective::kAllGather || collective == Collective::kGather;
}
constexpr bool scatters(Collective collective) {
  return collective == Collective::kReduceScatter || collective == Collective::kScatter;
}

// Whether that rank has such a buffer at all: a broadcast's input is the root's alone, and so on.
bool has_input(const ProofCase& which, int rank);
bool has_output(const ProofCase& which, int rank);

// Elements of the longer buffer, and of either.
constexpr std::size_t longer_elements(const ProofCase& which) {
  const std::size_t parts =
      holds_part_per_rank(which.collective) ? static_cast<std::size_t>(which.ranks) : 1;
  return which.count * parts;
}
constexpr std::size_t input_elements(const ProofCase& which) {
  return gathers(which.collective) ? which.count : longer_elements(which);
}
constexpr std::size_t output_elements(const ProofCase& which) {
  return scatters(which.collective) ? which.count : longer_elements(which);
}

}  // namespace catenary::proof
