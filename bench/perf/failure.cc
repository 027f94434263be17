#include "bench/perf/failure.h"

#include <unistd.h>

#include <array>
#include <cstring>

namespace catenary::perf {

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "unknown";
  const std::string full = name.data();
  return full.substr(0, full.find('.'));
}

std::string failure_line(const char* kind, const std::string& what, std::source_location where) {
  const std::string path = where.file_name();
  const std::size_t slash = path.rfind('/');
  return host_name() + ": Test " + kind + " failure " +
         (slash == std::string::npos ? path : path.substr(slash + 1)) + ":" +
         std::to_string(where.line()) + " '" + what + "'";
}

void check_nccl(ncclResult_t result, std::source_location where) {
  if (result == ncclSuccess) return;
  const char* last = ncclGetLastError(nullptr);
  throw TestFailure(failure_line(
      "NCCL", std::string(ncclGetErrorString(result)) + " / " + (last == nullptr ? "" : last),
      where));
}

void throw_errno(const std::string& call, int error, std::source_location where) {
  throw TestFailure(failure_line("system", call + ": " + std::strerror(error), where));
}

}  // namespace catenary::perf
