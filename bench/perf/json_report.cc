#include "bench/perf/json_report.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "bench/perf/failure.h"
#include "bench/perf/table.h"

extern char** environ;

namespace catenary::perf {
namespace {

constexpr int kFormatVersion = 3;

const char* as_text(bool value) { return value ? "true" : "false"; }

// Of the environment, what has to do with us: the rest may hold secrets.
bool worth_writing(std::string_view setting) {
  return setting.starts_with("NCCL_") || setting.starts_with("CATENARY_");
}

std::string version_text(int code) {
  const int major = code >= 10000 ? code / 10000 : code / 1000;
  const int minor = code >= 10000 ? code / 100 % 100 : code / 100 % 10;
  return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(code % 100);
}

}  // namespace

JsonReport::JsonReport(const Options& options, int argc, char** argv, int library_version,
                       std::span<const DeviceLine> devices)
    : options_(options) {
  open(options.output_file);
  json_.begin_object();
  json_.key("version");
  json_.integer(kFormatVersion);
  json_.key("start_time");
  json_.string(timestamp());
  json_.key("args");
  json_.begin_array();
  for (int i = 0; i < argc; ++i) json_.string(argv[i]);
  json_.end_array();
  json_.key("env");
  json_.begin_array();
  for (char** setting = environ; *setting != nullptr; ++setting) {
    if (worth_writing(*setting)) json_.string(*setting);
  }
  json_.end_array();
  json_.key("nccl_version");
  json_.string(version_text(library_version));
  write_config(devices);
  json_.key("results");
  json_.begin_array();
}

void JsonReport::open(const std::string& path) {
  path_ = path;
  for (int number = 1;; ++number) {
    const int fd = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd >= 0) {
      file_.reset(fdopen(fd, "w"));
      return;
    }
    if (errno != EEXIST) throw_errno("open " + path_, errno);
    path_ = path + "." + std::to_string(number);
  }
}

void JsonReport::write_config(std::span<const DeviceLine> devices) {
  const auto integer = [this](const char* name, std::int64_t value) {
    json_.key(name);
    json_.integer(value);
  };
  const auto text = [this](const char* name, std::string_view value) {
    json_.key(name);
    json_.string(value);
  };
  json_.key("config");
  json_.begin_object();
  integer("nthreads", options_.threads);
  integer("ngpus", options_.gpus);
  integer("minimum_bytes", static_cast<std::int64_t>(options_.min_bytes));
  integer("maximum_bytes", static_cast<std::int64_t>(options_.max_bytes));
  if (options_.step_factor > 1) {
    integer("step_factor", static_cast<std::int64_t>(options_.step_factor));
  } else {
    integer("step_bytes", static_cast<std::int64_t>(options_.step_bytes));
  }
  integer("warmup_iters", options_.warmup_iterations);
  integer("iterations", options_.iterations);
  integer("aggregated_iterations", options_.aggregated);
  integer("validation", options_.checks);
  integer("graph", 0);
  integer("blocking_collectives", static_cast<int>(options_.blocking));
  text("per_iter_timing", as_text(options_.per_iteration));
  integer("per_iter_skip", options_.per_iteration_skip);
  text("parallel_init", as_text(options_.parallel_init));
  text("memory", name_of(options_.memory));
  json_.key("devices");
  json_.begin_array();
  for (const DeviceLine& line : devices) {
    json_.begin_object();
    integer("rank", line.rank);
    integer("group", line.group);
    integer("pid", line.pid);
    text("hostname", line.host);
    integer("device", line.device);
    text("device_hex", line.bus_id);
    text("device_info", line.info);
    json_.end_object();
  }
  json_.end_array();
  json_.end_object();
}

void JsonReport::write_side(const char* name, const Side& side) {
  json_.key(name);
  json_.begin_object();
  json_.key(options_.report_cpu_time ? "cpu_time" : "time");
  json_.number(side.time_us);
  json_.key("alg_bw");
  json_.number(side.algorithm_gbs);
  json_.key("bus_bw");
  json_.number(side.bus_gbs);
  json_.key("nwrong");
  if (side.wrong) {
    json_.integer(static_cast<std::int64_t>(*side.wrong));
  } else {
    json_.null();
  }
  json_.end_object();
}

void JsonReport::write_iterations(const char* name, const IterationStats& stats) {
  const auto number = [this](const char* key, double value) {
    json_.key(key);
    json_.number(value);
  };
  const auto numbers = [this](const std::vector<double>& values) {
    json_.begin_array();
    for (const double value : values) json_.number(value);
    json_.end_array();
  };
  json_.key(name);
  json_.begin_object();
  json_.key("skipped_iterations");
  json_.integer(stats.skipped);
  number("min_us", stats.min_us);
  number("max_us", stats.max_us);
  number("avg_us", stats.avg_us);
  number("p50_us", stats.p50_us);
  number("p95_us", stats.p95_us);
  number("p99_us", stats.p99_us);
  number("stdev_us", stats.stdev_us);
  number("cv_pct", stats.cv_pct);
  json_.key("times_us");
  numbers(stats.times_us);
  json_.key("per_process_max_times_us");
  json_.begin_array();
  for (const auto& times : stats.per_process_max_times_us) numbers(times);
  json_.end_array();
  json_.end_object();
}

void JsonReport::add(const Row& row, const std::string& experiment) {
  json_.begin_object();
  json_.key("size");
  json_.integer(static_cast<std::int64_t>(row.bytes));
  json_.key("count");
  json_.integer(static_cast<std::int64_t>(row.count));
  json_.key("type");
  json_.string(row.type);
  json_.key("redop");
  json_.string(row.reduction);
  json_.key("root");
  json_.integer(row.root);
  write_side("out_of_place", row.out_of_place);
  write_side("in_place", row.in_place);
  if (row.out_of_place.iterations) {
    write_iterations("out_of_place_per_iter", *row.out_of_place.iterations);
  }
  if (row.in_place.iterations) write_iterations("in_place_per_iter", *row.in_place.iterations);
  json_.key("actual_iterations");
  json_.integer(options_.iterations);
  json_.key("experiment_name");
  json_.string(experiment);
  json_.end_object();
}

void JsonReport::write_summary(const Summary& summary) {
  json_.key("out_of_bounds");
  json_.begin_object();
  json_.key("count");
  json_.integer(static_cast<std::int64_t>(summary.wrong));
  json_.key("okay");
  json_.string(as_text(summary.wrong == 0));
  json_.end_object();
  json_.key("average_bus_bandwidth");
  json_.begin_object();
  json_.key("bandwidth");
  json_.number(summary.mean_bus_gbs);
  json_.key("okay");
  json_.string(as_text(summary.fast_enough.value_or(true)));
  json_.end_object();
}

void JsonReport::finish(const Summary& summary) {
  json_.end_array();
  write_summary(summary);
  close("");
}

void JsonReport::finish_with_error(const std::string& message) {
  json_.end_array();
  close(message);
}

void JsonReport::close(const std::string& error) {
  json_.key("errors");
  json_.begin_array();
  if (!error.empty()) json_.string(error);
  json_.end_array();
  json_.key("end_time");
  json_.string(timestamp());
  json_.end_object();
  std::fprintf(file_.get(), "%s\n", json_.text().c_str());
  if (std::fflush(file_.get()) != 0) throw_errno("write " + path_, errno);
  file_.reset();
}

}  // namespace catenary::perf
