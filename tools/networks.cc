// catenary networks: the ways from rank to rank, and which of them work on this machine.
#include <cstdio>

#include "src/base/config.h"
#include "tools/verb.h"
#include "transports/built_in.h"

namespace catenary {

int run_networks(int argc, char** argv) {
  if (argc > 1) {
    std::fprintf(stderr, "usage: catenary networks\n");
    return std::string_view(argv[1]) == "--help" ? 0 : 2;
  }
  std::printf("%s", describe_transports(Config::process()).c_str());
  return 0;
}

}  // namespace catenary
