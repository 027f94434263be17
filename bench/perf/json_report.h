// JsonReport: the results as a file (-J), in format 3 of nccl-tests.
//
// The file is made when the run starts, never over an existing one (then .1, .2, ... is added to
// the name), and written when it ends, also when it ends with an error.
#pragma once

#include <cstdio>
#include <memory>
#include <span>
#include <string>

#include "bench/perf/json_writer.h"
#include "bench/perf/options.h"
#include "bench/perf/result.h"

namespace catenary::perf {

class JsonReport {
 public:
  JsonReport(const Options& options, int argc, char** argv, int library_version,
             std::span<const DeviceLine> devices);

  void add(const Row& row, const std::string& experiment);
  void finish(const Summary& summary);
  // In place of finish().
  void finish_with_error(const std::string& message);

  const std::string& path() const { return path_; }

 private:
  struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  void open(const std::string& path);
  void write_config(std::span<const DeviceLine> devices);
  void write_side(const char* name, const Side& side);
  void write_iterations(const char* name, const IterationStats& stats);
  void write_summary(const Summary& summary);
  void close(const std::string& error);

  const Options& options_;
  std::string path_;
  std::unique_ptr<std::FILE, CloseFile> file_;
  JsonWriter json_;
};

}  // namespace catenary::perf
