// The `catenary` command: looks at algorithms and machines without running a program on them.
#include <cstdio>
#include <exception>
#include <string_view>

#include "src/base/error.h"
#include "tools/verb.h"

namespace catenary {
namespace {

constexpr Verb kVerbs[] = {
    {"draw", "a space-time picture of a schedule, as SVG", run_draw},
    {"estimate", "what an operation should take with ranks that need not be there", run_estimate},
    {"export", "a schedule as a trace for Chrome or as a file for MSCCL", run_export},
    {"list", "the algorithms of each collective", run_list},
    {"networks", "the ways from rank to rank, and which of them work here", run_networks},
    {"tune", "measures this machine, so that the best algorithms are chosen", run_tune},
    {"verify", "proves algorithms for many numbers of ranks", run_verify},
};

void print_help(std::FILE* to) {
  std::fprintf(to, "usage: catenary <verb> [options]\n\n");
  for (const Verb& verb : kVerbs) {
    std::fprintf(to, "  %-10.*s %.*s\n", static_cast<int>(verb.name.size()), verb.name.data(),
                 static_cast<int>(verb.summary.size()), verb.summary.data());
  }
  std::fprintf(to, "\ncatenary <verb> --help tells the options of a verb.\n");
}

int run_verb(const Verb& verb, int argc, char** argv) {
  try {
    return verb.run(argc, argv);
  } catch (const Error& error) {
    std::fprintf(stderr, "catenary %s: %s\n", argv[0], error.what());
    if (error.code() == ErrorCode::kInvalidUsage || error.code() == ErrorCode::kInvalidArgument) {
      std::fprintf(stderr, "catenary %s --help tells its options\n", argv[0]);
    }
    return 2;
  }
}

int run(int argc, char** argv) {
  if (argc < 2) {
    print_help(stderr);
    return 2;
  }
  const std::string_view name = argv[1];
  if (name == "--help" || name == "-h" || name == "help") {
    print_help(stdout);
    return 0;
  }
  for (const Verb& verb : kVerbs) {
    if (verb.name == name) return run_verb(verb, argc - 1, argv + 1);
  }
  std::fprintf(stderr, "catenary: there is no verb \"%s\"\n\n", argv[1]);
  print_help(stderr);
  return 2;
}

}  // namespace
}  // namespace catenary

int main(int argc, char** argv) {
  try {
    return catenary::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "catenary: %s\n", error.what());
    return 2;
  }
}
