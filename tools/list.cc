// catenary list: the algorithms of each collective.
#include <cstdio>

#include "src/collective/algorithms.h"
#include "tools/verb.h"

namespace catenary {

int run_list(int argc, char** argv) {
  if (argc > 1) {
    std::fprintf(stderr, "usage: catenary list\n");
    return std::string_view(argv[1]) == "--help" ? 0 : 2;
  }
  for (int i = 0; i < kCollectiveCount; ++i) {
    const auto collective = static_cast<Collective>(i);
    const std::string_view name = name_of(collective);
    std::printf("%-14.*s", static_cast<int>(name.size()), name.data());
    for (const Algorithm& algorithm : algorithms()) {
      if (find_algorithm(collective, algorithm.name) != &algorithm) continue;
      std::printf(" %.*s", static_cast<int>(algorithm.name.size()), algorithm.name.data());
    }
    std::printf("\n");
  }
  return 0;
}

}  // namespace catenary
