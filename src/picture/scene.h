// A scene is what pictures and exports show: one algorithm with all its ranks and lanes, and what
// the chunks of its collective mean.
//
// Pure values; any thread; nothing waits.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/collective/algorithms.h"
#include "src/collective/schedule.h"

namespace catenary::picture {

struct Scene {
  const Algorithm* algorithm = nullptr;
  int ranks = 2;
  int root = 0;  // of Send and Recv: who receives; rank 0 sends
  int box = 1;
  int lanes = 1;
  int window = 1;  // see Place
  // What was asked for, if that is a form of the algorithm's collective: a barrier, or uneven
  // parts.
  std::optional<Collective> form = {};
};

// [lane][rank]. Throws Error(kInvalidArgument) for a scene that cannot be: a root that is no rank,
// boxes that do not divide the ranks, ranks that the algorithm does not run on.
std::vector<std::vector<Schedule>> schedules_of(const Scene& scene);

// "ring AllReduce"
std::string name_of(const Scene& scene);

// Which part of the collective's data a rank's input(index) is, and where a rank's output(index)
// lies among these parts. For AlltoAll the part is the rank it is meant for.
int part_of_input(const Scene& scene, int rank, int index);
int part_of_output(const Scene& scene, int rank, int index);

// How many chunks a rank's input and output have of the `chunk_count` that the schedule cuts; none
// where the collective gives the rank no such buffer.
int input_chunks(const Scene& scene, int rank, int chunk_count);
int output_chunks(const Scene& scene, int rank, int chunk_count);

// Send or Recv.
bool is_point_to_point(const Scene& scene);

// Whether each pair of ranks has a part of its own.
bool is_exchange(const Scene& scene);

// Whether the results combine what all ranks give.
bool combines(const Scene& scene);

}  // namespace catenary::picture
