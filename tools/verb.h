// A verb of the `catenary` command. argv[0] is the verb's own name, so getopt_long works on it as
// it would in main. Returns the exit code: 0 done, 1 what was asked about is wrong; throws Error
// with a message for the user for all else, bad usage too, which is code 2.
#pragma once

#include <string_view>

namespace catenary {

struct Verb {
  std::string_view name;
  std::string_view summary;  // a line of `catenary --help`
  int (*run)(int argc, char** argv);
};

int run_draw(int argc, char** argv);
int run_estimate(int argc, char** argv);
int run_export(int argc, char** argv);
int run_list(int argc, char** argv);
int run_networks(int argc, char** argv);
int run_tune(int argc, char** argv);
int run_verify(int argc, char** argv);

}  // namespace catenary
