// catenary list: the algorithms of each collective.
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "src/collective/algorithms.h"
#include "tools/arguments.h"
#include "tools/verb.h"

namespace catenary {
namespace {

constexpr char kHelp[] =
    "usage: catenary list [<collective>]\n\n"
    "Prints the algorithms of each collective, or of one: those of one level, and the pairs for "
    "ranks on\n"
    "several machines, of which any in the first braces goes inside of machines with any in the\n"
    "second across.\n";

// "{a,b,c}", as a shell understands it.
std::string choice(const std::vector<std::string_view>& names) {
  std::string text;
  for (const std::string_view name : names) text.append(text.empty() ? "{" : ",").append(name);
  return text + "}";
}

void add_once(std::vector<std::string_view>& names, std::string_view name) {
  if (std::ranges::find(names, name) == names.end()) names.push_back(name);
}

// The flat ones in one line, and the pairs that can be made of some of them in another.
void print_algorithms(Collective collective) {
  std::string flat;
  std::vector<std::string_view> inside;
  std::vector<std::string_view> across;
  for (const Algorithm& algorithm : algorithms()) {
    if (!performs(algorithm, collective)) continue;
    if (algorithm.inside.empty()) {
      flat.append(" ").append(algorithm.name);
    } else {
      add_once(inside, algorithm.inside);
      add_once(across, algorithm.across);
    }
  }
  std::printf("%-14s%s\n", std::string(name_of(collective)).c_str(), flat.c_str());
  if (inside.empty()) return;
  std::printf("%-14s hier_%s_%s\n", "", choice(inside).c_str(), choice(across).c_str());
}

}  // namespace

int run_list(int argc, char** argv) {
  if (asks_for_help(argc, argv, 1)) {
    std::fputs(kHelp, stdout);
    return 0;
  }
  if (optind < argc) {
    print_algorithms(collective_of(argv[optind]));
    return 0;
  }
  for (int i = 0; i < kCollectiveCount; ++i) print_algorithms(static_cast<Collective>(i));
  return 0;
}

}  // namespace catenary
