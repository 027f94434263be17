#include "src/comm/tuning_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <optional>
#include <sstream>

#include "src/base/error.h"
#include "src/base/log.h"
#include "src/base/unique_fd.h"
#include "src/collective/tuning.h"
#include "src/topology/machine.h"

namespace catenary {
namespace {

// More than any text that we would accept.
constexpr std::size_t kMostFileBytes = 100000;

// FNV-1a: names a file, protects nothing.
std::uint64_t fingerprint(const std::string& text) {
  std::uint64_t hash = 14695981039346656037ull;
  for (const char letter : text)
    hash = (hash ^ static_cast<unsigned char>(letter)) * 1099511628211ull;
  return hash;
}

// Nothing if there is no file.
std::optional<std::string> read_text(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) {
    if (errno == ENOENT || errno == ENOTDIR) return std::nullopt;
    throw_system_error("it cannot be opened", errno);
  }
  std::string text(kMostFileBytes, '\0');
  const ssize_t count = ::read(file.get(), text.data(), text.size());
  if (count < 0) throw_system_error("it cannot be read", errno);
  text.resize(static_cast<std::size_t>(count));
  return text;
}

void make_folders(const std::string& path) {
  for (std::size_t slash = path.find('/', 1); slash != std::string::npos;
       slash = path.find('/', slash + 1)) {
    const std::string folder = path.substr(0, slash);
    if (::mkdir(folder.c_str(), 0755) != 0 && errno != EEXIST) {
      throw_system_error("cannot make " + folder, errno);
    }
  }
}

// Those of the file, or the defaults and why.
Tuning find_tuning(const Config& config) {
  const std::string path = tuning_path(config);
  if (path.empty()) return {default_parameters(), "the defaults: there is no place for a file"};
  try {
    const std::optional<std::string> text = read_text(path);
    if (text) return {read_tuning(*text, tuned_machine()), "those of " + path};
    if (!config.tuning_file.empty()) {
      log_notice(-1, path + ", which CATENARY_TUNING_FILE names, does not exist; using defaults");
    }
    return {default_parameters(), "the defaults: `catenary tune` has not made " + path};
  } catch (const Error& error) {
    log_notice(-1, format("the tuning in %s is not used, but defaults: %s; `catenary tune` makes a "
                          "new one",
                          path.c_str(), error.what()));
    return {default_parameters(), "the defaults: " + path + " is no good"};
  }
}

}  // namespace

std::string tuned_machine() {
  return format("%s, %d cores", processor_name().c_str(), machine_cores());
}

std::string tuning_path(const Config& config) {
  if (!config.tuning_file.empty()) return config.tuning_file;
  if (config.cache_folder.empty()) return "";
  return config.cache_folder +
         format("/catenary/tuning-%016llx",
                static_cast<unsigned long long>(fingerprint(tuned_machine())));
}

Tuning load_tuning(const Config& config) {
  Tuning tuning = find_tuning(config);
  log_info(Subsystem::kInit, -1, "The parameters of the model of time are " + tuning.origin);
  return tuning;
}

void store_tuning(const CostParameters& parameters, const std::string& path,
                  const std::string& remark) {
  make_folders(path);
  const std::string fresh = path + format(".%d", static_cast<int>(::getpid()));
  const std::string text = write_tuning(parameters, tuned_machine(), remark);
  std::FILE* file = std::fopen(fresh.c_str(), "we");
  if (file == nullptr) throw_system_error("cannot write " + fresh, errno);
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const bool closed = std::fclose(file) == 0;
  if (!written || !closed || std::rename(fresh.c_str(), path.c_str()) != 0) {
    const int reason = errno;
    ::unlink(fresh.c_str());
    throw_system_error("cannot write " + path, reason);
  }
}

}  // namespace catenary
