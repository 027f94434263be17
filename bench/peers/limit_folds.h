// Folds: the one thing that the limits of the machine are made of. Every destination becomes the
// sum of all sources; with one source that is a copy. Loops for this processor, no library around
// them.
#pragma once

#include <cstddef>
#include <vector>

namespace limits {

struct Fold {
  std::vector<float*> to;
  std::vector<const float*> from;
  std::size_t count = 0;  // floats
};

// `streaming`: stores that bypass the caches, for results that will not be read soon.
void run(const Fold& fold, bool streaming);

}  // namespace limits
