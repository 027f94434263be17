// Prints the table of environment variables, for configuration.py.
#include <cstdio>

#include "src/base/config.h"

int main() { return std::fputs(catenary::Config::describe().c_str(), stdout) < 0; }
