// What can go wrong in a bandwidth tool, and the calls that notice it.
//
// UsageError is the command line's fault: usage and exit status 1. TestFailure is everything else;
// it carries the complete line to print. Both are caught in main and at the top of each thread.
#pragma once

#include <source_location>
#include <stdexcept>
#include <string>

#include "include/nccl.h"

namespace catenary::perf {

class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class TestFailure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// "host: Test <kind> failure file:line '<what>'", the line that scripts look for.
std::string failure_line(const char* kind, const std::string& what, std::source_location where);

// Throws TestFailure, with the library's own words, unless the call succeeded.
void check_nccl(ncclResult_t result, std::source_location where = std::source_location::current());

// Throws TestFailure for an operating system error.
[[noreturn]] void throw_errno(const std::string& call, int error,
                              std::source_location where = std::source_location::current());

std::string host_name();

}  // namespace catenary::perf
