#include "src/transport/process_runs.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "src/base/unique_fd.h"

namespace catenary {
namespace {

// Of what stands behind the name in /proc/N/stat, "state parent group ...": the state of the first
// thread, and how many there are.
constexpr int kFieldsBetween = 16;

bool says_that_all_have_ended(const char* fields) {
  char state = '?';
  int threads = 2;
  if (std::sscanf(fields, " %c", &state) != 1 || std::strchr("ZXx", state) == nullptr) return false;
  for (int field = 0; field <= kFieldsBetween && fields != nullptr; ++field) {
    fields = std::strchr(fields + 1, ' ');
  }
  return fields != nullptr && std::sscanf(fields, " %d", &threads) == 1 && threads <= 1;
}

}  // namespace

bool process_runs(std::uint32_t process) noexcept {
  // Who has ended stays until its parent has asked, and so does who only has ended its first
  // thread.
  if (::kill(static_cast<pid_t>(process), 0) != 0 && errno == ESRCH) return false;
  char path[32];
  std::snprintf(path, sizeof path, "/proc/%u/stat", process);
  const UniqueFd fd(::open(path, O_RDONLY | O_CLOEXEC));
  char text[512];
  const ssize_t bytes = fd ? ::read(fd.get(), text, sizeof text - 1) : 0;
  if (bytes <= 0) return true;
  text[bytes] = '\0';
  const char* const name_end = std::strrchr(text, ')');  // a name may hold anything
  return name_end == nullptr || !says_that_all_have_ended(name_end + 1);
}

}  // namespace catenary
