// Which ranks share a machine, as one number.
//
// Pure; any thread.
#pragma once

#include <span>

namespace catenary {

// Ranks [first, first + count) that share memory with a rank, itself among them. A count of 0 says
// that those that do are not consecutive.
struct LocalRun {
  int first = 0;
  int count = 0;
  bool operator==(const LocalRun&) const = default;
};

// What every rank says: Place.box, 1 unless all say the same.
constexpr int box_of(std::span<const LocalRun> runs) {
  const auto ranks = static_cast<int>(runs.size());
  const int box = runs.empty() ? 0 : runs[0].count;
  if (box < 1 || ranks % box != 0) return 1;
  for (int rank = 0; rank < ranks; ++rank) {
    if (runs[static_cast<std::size_t>(rank)] != LocalRun{rank / box * box, box}) return 1;
  }
  return box;
}

}  // namespace catenary
