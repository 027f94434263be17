#include "src/base/error.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <system_error>

namespace catenary {
namespace {

std::string format_list(const char* pattern, va_list arguments) {
  va_list copy;
  va_copy(copy, arguments);
  const int length = std::vsnprintf(nullptr, 0, pattern, copy);
  va_end(copy);
  if (length < 0) return pattern;
  std::string text(static_cast<std::size_t>(length), '\0');
  std::vsnprintf(text.data(), text.size() + 1, pattern, arguments);
  return text;
}

}  // namespace

std::string format(const char* pattern, ...) {
  va_list arguments;
  va_start(arguments, pattern);
  std::string text = format_list(pattern, arguments);
  va_end(arguments);
  return text;
}

Error as_error(const std::exception& error) {
  if (const auto* ours = dynamic_cast<const Error*>(&error)) return *ours;
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) {
    return Error(ErrorCode::kSystem, "out of memory");
  }
  // Of all that we ask the standard library for, only threads are refused in this way.
  if (const auto* refused = dynamic_cast<const std::system_error*>(&error)) {
    return Error(ErrorCode::kSystem,
                 format("cannot start a thread (see ulimit -u and the limits of the container): %s",
                        refused->code().message().c_str()));
  }
  return Error(ErrorCode::kInternal, error.what());
}

void throw_error(ErrorCode code, const char* pattern, ...) {
  va_list arguments;
  va_start(arguments, pattern);
  const std::string text = format_list(pattern, arguments);
  va_end(arguments);
  throw Error(code, text);
}

std::string errno_text(int error_number) {
  char buffer[128];
  // The GNU strerror_r returns the text and may leave the buffer alone.
  const char* text = strerror_r(error_number, buffer, sizeof buffer);
  return format("%s (%d)", text, error_number);
}

void throw_system_error(std::string_view what, int error_number) {
  throw Error(ErrorCode::kSystem, std::string(what) + ": " + errno_text(error_number));
}

void assertion_failed(const char* condition, const char* file, int line) noexcept {
  std::fprintf(stderr, "catenary: internal assertion failed: %s at %s:%d\n", condition, file, line);
  std::abort();
}

}  // namespace catenary
