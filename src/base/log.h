// The log: lines in NCCL's format, to where NCCL_DEBUG_FILE says, at the levels NCCL_DEBUG says.
//
// A warning is also kept as the text that ncclGetLastError returns, whether or not it is printed.
// It begins with the variables that were set; values that are no good are named on standard error.
// Any thread; nothing waits but the write itself. A log that cannot be opened or written is
// reported once on standard error and then goes to standard output.
#pragma once

#include <cstddef>
#include <string>

#include "src/base/size_literals.h"

namespace catenary {

enum class LogLevel : int { kNone, kVersion, kWarn, kInfo, kAbort, kTrace };

enum class Subsystem : unsigned {
  kInit = 1u << 0,
  kColl = 1u << 1,
  kP2p = 1u << 2,
  kShm = 1u << 3,
  kNet = 1u << 4,
  kEnv = 1u << 5,
  kAlloc = 1u << 6,
  kCall = 1u << 7,
  kBootstrap = 1u << 8,
  kDestroy = 1u << 9,
  kTuning = 1u << 10,
};

bool log_enabled(LogLevel level, Subsystem subsystem);

// Prints one line if enabled. `device` < 0: not known.
void log_info(Subsystem subsystem, int device, const std::string& message);
void log_trace(Subsystem subsystem, int device, const std::string& message);
void log_version(const std::string& message);

// As much of an error's text is kept.
inline constexpr std::size_t kErrorTextBytes = 1_KB;

// Records `message` as the last error and prints it at WARN and above.
void log_warn(const char* file, int line, const char* function, const std::string& message);
#define CATENARY_WARN(message) ::catenary::log_warn(__FILE__, __LINE__, __func__, (message))

// Prints one line at WARN and above, without making it the last error.
void log_notice(int device, const std::string& message);

// The text of the newest warning of the process, "" before the first. A copy of the calling
// thread's own, valid until that thread asks again: a watchdog may read while others fail.
const char* last_error_text();

}  // namespace catenary
