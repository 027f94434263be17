// The table on standard output, column for column what scripts written for nccl-tests expect.
// Every line that is not a row of results begins with '#'. Each line is flushed when it is printed.
#pragma once

#include <span>
#include <string>

#include "bench/perf/options.h"
#include "bench/perf/result.h"

namespace catenary::perf {

// "%Y-%m-%d %H:%M:%S", now, local time.
std::string timestamp();

class Table {
 public:
  explicit Table(const Options& options) : options_(options) {}

  void print_head(const std::string& program, int library_version,
                  std::span<const DeviceLine> devices) const;
  void print_titles() const;
  void print_row(const Row& row) const;
  void print_tail(const std::string& program, const Summary& summary) const;

 private:
  void print_side(const Side& side) const;

  const Options& options_;
};

}  // namespace catenary::perf
