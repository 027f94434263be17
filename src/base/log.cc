#include "src/base/log.h"

#include <strings.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <mutex>
#include <string_view>

#include "src/base/config.h"
#include "src/base/error.h"
#include "src/base/text.h"
#include "src/base/thread_text.h"

namespace catenary {
namespace {

struct SubsystemName {
  const char* name;
  unsigned bits;
};
constexpr unsigned kAll = ~0u;
constexpr SubsystemName kSubsystems[] = {
    {"INIT", static_cast<unsigned>(Subsystem::kInit)},
    {"COLL", static_cast<unsigned>(Subsystem::kColl)},
    {"P2P", static_cast<unsigned>(Subsystem::kP2p)},
    {"SHM", static_cast<unsigned>(Subsystem::kShm)},
    {"NET", static_cast<unsigned>(Subsystem::kNet)},
    {"ENV", static_cast<unsigned>(Subsystem::kEnv)},
    {"ALLOC", static_cast<unsigned>(Subsystem::kAlloc)},
    {"CALL", static_cast<unsigned>(Subsystem::kCall)},
    {"BOOTSTRAP", static_cast<unsigned>(Subsystem::kBootstrap)},
    {"DESTROY", static_cast<unsigned>(Subsystem::kDestroy)},
    {"TUNING", static_cast<unsigned>(Subsystem::kTuning)},
    {"ALL", kAll},
    // Parts of NCCL that have no counterpart here: known names, so not a mistake, but empty.
    {"GRAPH", 0},
    {"PROXY", 0},
    {"NVLS", 0},
    {"REG", 0},
    {"PROFILE", 0},
    {"RAS", 0},
    {"ALLOC_HOST", 0},
};
constexpr unsigned kDefaultSubsystems = static_cast<unsigned>(Subsystem::kInit) |
                                        static_cast<unsigned>(Subsystem::kBootstrap) |
                                        static_cast<unsigned>(Subsystem::kEnv);

LogLevel parse_level(const std::string& text) {
  constexpr const char* kNames[] = {"NONE", "VERSION", "WARN", "INFO", "ABORT", "TRACE"};
  for (int i = 0; i < 6; ++i) {
    if (strcasecmp(text.c_str(), kNames[i]) == 0) return static_cast<LogLevel>(i);
  }
  if (!text.empty()) {
    std::fprintf(stderr,
                 "catenary: NCCL_DEBUG=%s is none of NONE, VERSION, WARN, INFO, ABORT, TRACE; "
                 "logging nothing\n",
                 text.c_str());
  }
  return LogLevel::kNone;
}

unsigned parse_subsystems(std::string_view text) {
  text = trimmed(text);
  if (text.empty()) return kDefaultSubsystems;
  const bool exclude = text[0] == '^';
  if (exclude) text.remove_prefix(1);
  unsigned mask = 0;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    const std::string word(trimmed(text.substr(at, comma - at)));
    bool known = word.empty();
    for (const SubsystemName& entry : kSubsystems) {
      if (strcasecmp(word.c_str(), entry.name) != 0) continue;
      mask |= entry.bits;
      known = true;
    }
    if (!known)
      std::fprintf(stderr, "catenary: NCCL_DEBUG_SUBSYS: no subsystem is called %s\n",
                   word.c_str());
    at = comma + 1;
  }
  return exclude ? ~mask : mask;
}

std::string host_name() {
  char name[256] = "localhost";
  ::gethostname(name, sizeof name - 1);
  name[std::strcspn(name, ".")] = '\0';
  return name;
}

std::string expand(const std::string& pattern) {
  std::string path;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '%' || i + 1 == pattern.size()) {
      path += pattern[i];
      continue;
    }
    switch (pattern[++i]) {
      case 'h': path += host_name(); break;
      case 'p': path += std::to_string(::getpid()); break;
      case '%': path += '%'; break;
      default: path += '%', path += pattern[i];
    }
  }
  return path;
}

std::string prefix(int device) {
  const std::string where = device >= 0 ? format("[%d] ", device) : "";
  return format("%s:%d:%ld %s", host_name().c_str(), static_cast<int>(::getpid()),
                ::syscall(SYS_gettid), where.c_str());
}

struct Log {
  const LogLevel level = parse_level(Config::process().debug);
  const unsigned subsystems = parse_subsystems(Config::process().debug_subsystems);
  std::FILE* file = stdout;
  std::mutex mutex;
  char last_error[kErrorTextBytes] = "";

  Log() {
    open();
    tell_settings();
  }

  void open() {
    const std::string& pattern = Config::process().debug_file;
    if (pattern.empty() || level == LogLevel::kNone) return;
    const std::string path = expand(pattern);
    if (std::FILE* opened = std::fopen(path.c_str(), "we")) {
      std::setvbuf(opened, nullptr, _IOLBF, 0);
      file = opened;
    } else {
      std::fprintf(stderr,
                   "catenary: NCCL_DEBUG_FILE: cannot write %s: %s; logging to standard output\n",
                   path.c_str(), errno_text(errno).c_str());
    }
  }

  // What was set, for who reads the log; what was set wrong, for everybody.
  void tell_settings() {
    for (const std::string& problem : Config::process().problems) {
      std::fprintf(stderr, "catenary: %s\n", problem.c_str());
    }
    if (level < LogLevel::kInfo || (subsystems & static_cast<unsigned>(Subsystem::kEnv)) == 0)
      return;
    for (const std::string& setting : Config::process().settings) {
      write(prefix(-1) + "NCCL INFO " + setting + "\n");
    }
  }

  void write(const std::string& line) {
    const std::lock_guard lock(mutex);
    std::fputs(line.c_str(), file);
    std::fflush(file);
  }
};

// Never destroyed: threads may log while the process exits.
Log& the_log() {
  static Log& log = *new Log;
  return log;
}

}  // namespace

bool log_enabled(LogLevel level, Subsystem subsystem) {
  const Log& log = the_log();
  return log.level >= level && (log.subsystems & static_cast<unsigned>(subsystem)) != 0;
}

void log_info(Subsystem subsystem, int device, const std::string& message) {
  if (!log_enabled(LogLevel::kInfo, subsystem)) return;
  the_log().write(prefix(device) + "NCCL INFO " + message + "\n");
}

void log_trace(Subsystem subsystem, int device, const std::string& message) {
  if (!log_enabled(LogLevel::kTrace, subsystem)) return;
  the_log().write(prefix(device) + "NCCL TRACE " + message + "\n");
}

void log_version(const std::string& message) {
  if (the_log().level >= LogLevel::kVersion) the_log().write(message + "\n");
}

void log_warn(const char* file, int line, const char* function, const std::string& message) {
  Log& log = the_log();
  {
    const std::lock_guard lock(log.mutex);
    std::snprintf(log.last_error, sizeof log.last_error, "%s", message.c_str());
  }
  if (log.level < LogLevel::kWarn) return;
  char when[64] = "";
  const std::time_t now = std::time(nullptr);
  std::tm local = {};
  std::strftime(when, sizeof when, "[%F %T] ", localtime_r(&now, &local));
  const char* slash = std::strrchr(file, '/');
  log.write(format("\n%s%s%s:%d (%s) NCCL WARN %s\n", when, prefix(-1).c_str(),
                   slash != nullptr ? slash + 1 : file, line, function, message.c_str()));
}

void log_notice(int device, const std::string& message) {
  if (the_log().level >= LogLevel::kWarn)
    the_log().write(prefix(device) + "NCCL WARN " + message + "\n");
}

const char* last_error_text() {
  static thread_local ThreadText<kErrorTextBytes> copy;
  Log& log = the_log();
  const std::lock_guard lock(log.mutex);
  return copy.keep(log.last_error);
}

}  // namespace catenary
