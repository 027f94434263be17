// Scenes for tests: every algorithm with some numbers of ranks.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "src/base/error.h"
#include "src/picture/scene.h"

namespace catenary::picture {

inline Scene scene_of(Collective collective, std::string_view algorithm, int ranks, int root = 0) {
  const Algorithm* found = find_algorithm(collective, algorithm);
  if (found == nullptr) {
    throw_error(ErrorCode::kInvalidArgument, "no algorithm %s", std::string(algorithm).c_str());
  }
  return {.algorithm = found, .ranks = ranks, .root = root};
}

inline std::vector<Scene> all_scenes(const std::vector<int>& rank_counts) {
  std::vector<Scene> scenes;
  for (const Algorithm& algorithm : algorithms()) {
    for (const int ranks : rank_counts) {
      const bool in_boxes = algorithm.runs_on({.ranks = ranks, .box = 2}) && ranks % 2 == 0;
      const int box = in_boxes ? 2 : 1;
      if (!algorithm.runs_on({.ranks = ranks, .box = box})) continue;
      scenes.push_back({.algorithm = &algorithm, .ranks = ranks, .root = ranks / 2, .box = box});
      scenes.push_back(
          {.algorithm = &algorithm, .ranks = ranks, .box = box, .lanes = 2, .window = 4});
    }
  }
  return scenes;
}

}  // namespace catenary::picture
