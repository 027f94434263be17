// Error: what is thrown inside the library. Codes outside, exceptions inside; an Error is caught at
// the C boundary and in the executor's loop, else only where docs/architecture.md says why. Whoever
// throws writes the whole message: which rank, which peer, which operation, the errno and the
// remedy. Nobody logs it a second time.
#pragma once

#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>

namespace catenary {

// One to one with ncclResult_t; the values are NCCL's.
enum class ErrorCode : int {
  kUnhandledDevice = 1,
  kSystem = 2,
  kInternal = 3,
  kInvalidArgument = 4,
  kInvalidUsage = 5,
  kRemote = 6,
  kTimeout = 8,
};

class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  // Copies share no text, as those of std::runtime_error do, so that one thread may throw an error
  // that another keeps, also in the eyes of a race detector that cannot see into the standard
  // library.
  Error(const Error& other)
      : std::runtime_error(std::string(other.what())), code_(other.code_), told_(other.told_) {}
  Error& operator=(const Error& other) {
    std::runtime_error::operator=(std::runtime_error(std::string(other.what())));
    code_ = other.code_;
    told_ = other.told_;
    return *this;
  }
  ErrorCode code() const noexcept { return code_; }
  // Whether it is in the log: then whoever catches it, or a copy, has nothing to tell.
  bool told() const noexcept { return told_; }
  void note_told() noexcept { told_ = true; }

 private:
  ErrorCode code_;
  bool told_ = false;
};

// What was caught, as one of ours: no memory and no thread are the system's, and what should not be
// is internal.
Error as_error(const std::exception& error);

// printf-style text, because this toolchain has no std::format.
std::string format(const char* pattern, ...) __attribute__((format(printf, 1, 2)));

[[noreturn]] void throw_error(ErrorCode code, const char* pattern, ...)
    __attribute__((format(printf, 2, 3)));

// Throws kSystem with "what: <text of error_number> (error_number)".
[[noreturn]] void throw_system_error(std::string_view what, int error_number);

// "Connection refused (111)": the text of an errno, for messages.
std::string errno_text(int error_number);

// A programming error of ours, never of input or a peer: off in release builds.
#ifdef NDEBUG
#define CATENARY_ASSERT(condition) static_cast<void>(0)
#else
#define CATENARY_ASSERT(condition)    \
  ((condition) ? static_cast<void>(0) \
               : ::catenary::assertion_failed(#condition, __FILE__, __LINE__))
#endif
[[noreturn]] void assertion_failed(const char* condition, const char* file, int line) noexcept;

}  // namespace catenary
