// main() of every bandwidth tool.
#include <cstdio>
#include <cstdlib>

#include "bench/perf/failure.h"
#include "bench/perf/launcher.h"
#include "bench/perf/options.h"
#include "bench/perf/run.h"

namespace catenary::perf {
namespace {

int run_tool(int argc, char** argv) {
  const bool speaks = mpirun_place().process == 0;
  std::unique_ptr<Launcher> launcher;
  try {
    const std::optional<Options> options = parse_options(argc, argv);
    if (!options) {
      if (speaks) std::fputs(usage(argv[0]).c_str(), stdout);
      return EXIT_SUCCESS;
    }
    launcher = make_launcher(options->procs, &argc, &argv);
    Run run(collective_test(), *options, *launcher, argc, argv);
    return run.execute();
  } catch (const UsageError& error) {
    const bool first = launcher == nullptr ? speaks : launcher->place().process == 0;
    if (first) {
      std::fprintf(stderr, "%s: %s\ntry %s --help\n", argv[0], error.what(), argv[0]);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
  }
  return EXIT_FAILURE;
}

}  // namespace
}  // namespace catenary::perf

int main(int argc, char** argv) { return catenary::perf::run_tool(argc, argv); }
