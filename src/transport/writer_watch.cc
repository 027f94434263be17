#include "src/transport/writer_watch.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/log.h"
#include "src/base/unique_fd.h"

namespace catenary {
namespace {

constexpr std::int64_t kMostWait_ms = 5000;
constexpr unsigned kLook_us = 100;

}  // namespace

void wait_for_writer(const SlotProducer& ring) noexcept {
  const Deadline deadline = Deadline::after_ms(kMostWait_ms);
  for (;;) {
    const std::uint32_t process = ring.writer();
    if (process == 0 || !process_runs(process)) return;
    if (deadline.passed()) break;
    ::usleep(kLook_us);
  }
  try {
    CATENARY_WARN(
        format("process %u has stopped in the middle of writing a result to this "
               "process's memory, of an operation that is given up; if it goes on, up "
               "to 64 KB of the operation's output will change once more",
               ring.writer()));
  } catch (...) {  // no memory for a warning
  }
}

bool process_runs(std::uint32_t process) noexcept {
  char path[32];
  std::snprintf(path, sizeof path, "/proc/%u/stat", process);
  const UniqueFd fd(::open(path, O_RDONLY | O_CLOEXEC));
  char text[512];
  const ssize_t bytes = fd ? ::read(fd.get(), text, sizeof text - 1) : 0;
  if (bytes <= 0) return false;
  text[bytes] = '\0';
  // "number (name) state": the name may hold anything.
  const char* const end = std::strrchr(text, ')');
  return end != nullptr && end[1] == ' ' && std::strchr("ZXx", end[2]) == nullptr;
}

}  // namespace catenary
