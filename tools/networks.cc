// catenary networks: the ways from rank to rank, and which of them work on this machine.
#include <cstdio>

#include "src/base/config.h"
#include "tools/arguments.h"
#include "tools/verb.h"
#include "transports/built_in.h"

namespace catenary {
namespace {

constexpr char kHelp[] =
    "usage: catenary networks\n\n"
    "Prints the ways from rank to rank that this library knows, and which of them work here.\n";

}  // namespace

int run_networks(int argc, char** argv) {
  if (asks_for_help(argc, argv)) {
    std::fputs(kHelp, stdout);
    return 0;
  }
  std::printf("%s", describe_transports(Config::process()).c_str());
  return 0;
}

}  // namespace catenary
