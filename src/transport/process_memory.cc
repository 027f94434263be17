#include "src/transport/process_memory.h"

#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>
#include <memory>
#include <new>

#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/log.h"
#include "src/base/size_literals.h"

namespace catenary {
namespace {

// How a copy by the kernel is measured, and how long it may take: of itself, and compared to a
// plain one.
struct Trial {
  std::size_t bytes;
  int samples;
  double most_us;
  double most_times;
};
// As long as most messages it would carry: the call is a part of what it costs. A Xeon takes 2.4
// us, 1.9 times as long as a plain copy, and gains. An EPYC takes 5.9, 4 to 5 times as long, and
// loses. An older Xeon takes 5 to 9, 2.3 to 3.9 times as long, and loses more than it gains.
constexpr Trial kByOne = {.bytes = 64_KB, .samples = 8, .most_us = 4, .most_times = 3};
// More than the second-level cache keeps, as is what both copy. The older Xeon is at 1.5 to 2.3
// times, and gains; the EPYC, by its rates for other sizes, would be at about 4.
constexpr Trial kByBoth = {.bytes = 1_MB,
                           .samples = 4,
                           .most_us = std::numeric_limits<double>::infinity(),
                           .most_times = 3.3};

template <class Copy>
std::int64_t shortest_ns(int samples, Copy copy) {
  std::int64_t shortest = std::numeric_limits<std::int64_t>::max();
  for (int sample = 0; sample < samples; ++sample) {
    const std::int64_t start = now_ns();
    copy();
    shortest = std::min(shortest, now_ns() - start);
  }
  return shortest;
}

// By one of the two calls, which may do a part of it at a time. 0 or why not all was copied.
template <class Call>
int copy_all(Call call, pid_t process, std::byte* here, std::uint64_t there,
             std::size_t bytes) noexcept {
  while (bytes > 0) {
    const iovec ours = {here, bytes};
    const iovec theirs = {reinterpret_cast<void*>(there), bytes};
    const ssize_t copied = call(process, &ours, 1, &theirs, 1, 0);
    if (copied < 0) return errno;
    if (copied == 0) return EFAULT;
    here += copied;
    there += static_cast<std::uint64_t>(copied);
    bytes -= static_cast<std::size_t>(copied);
  }
  return 0;
}

bool passes(const Trial& trial) {
  // Not at the same place of a page: the plain copy's loads would wait for its stores.
  constexpr std::size_t kApart = 2112;
  const std::size_t bytes = 2 * trial.bytes + kApart + 64;
  const std::unique_ptr<std::byte[]> memory(new (std::nothrow) std::byte[bytes]);
  if (!memory) return false;
  std::memset(memory.get(), 1, bytes);
  const std::size_t unaligned = reinterpret_cast<std::uintptr_t>(memory.get()) % 64;
  std::byte* const to = memory.get() + (64 - unaligned);
  std::byte* const from = to + trial.bytes + kApart;
  const ProcessMemory own = ProcessMemory::own();
  int refused = 0;
  const std::int64_t by_kernel = shortest_ns(trial.samples, [&] {
    refused |= own.try_read(to, reinterpret_cast<std::uintptr_t>(from), trial.bytes);
  });
  if (refused != 0) return false;
  const std::int64_t plain =
      shortest_ns(trial.samples, [&] { std::memcpy(to, from, trial.bytes); });
  const double us = static_cast<double>(by_kernel) / 1e3;
  const double times = us * 1e3 / static_cast<double>(std::max<std::int64_t>(plain, 1));
  const bool is_quick = us <= trial.most_us && times <= trial.most_times;
  log_info(Subsystem::kShm, -1,
           format("The kernel copies %zu KB in %.1f us, %.1f times as long as a plain copy: %s",
                  trial.bytes / 1_KB, us, times, is_quick ? "quick enough" : "too slow"));
  return is_quick;
}

}  // namespace

ProcessMemory ProcessMemory::of(const HeapAddress& address) {
  ProcessMemory memory(static_cast<pid_t>(address.process));
  memory.token_at_ = address.base;
  memory.token_ = address.token;
  const int reason = memory.try_recognize();
  if (reason == ESRCH) throw_error(ErrorCode::kSystem, "its number is no process's, or another's");
  if (reason != 0) throw_system_error("the kernel does not copy from its process", reason);
  return memory;
}

// 0, or the reason why the token cannot be read; ESRCH: it is not there.
int ProcessMemory::try_recognize() const noexcept {
  if (!token_) return 0;
  Token token{};
  const int reason = try_read(token.data(), token_at_, token.size());
  return reason != 0 || token == *token_ ? reason : ESRCH;
}

ProcessMemory ProcessMemory::own() noexcept { return ProcessMemory(::getpid()); }

int ProcessMemory::try_read(std::byte* to, std::uint64_t from, std::size_t bytes) const noexcept {
  if (process_ == 0) return ESRCH;
  return copy_all(::process_vm_readv, process_, to, from, bytes);
}

int ProcessMemory::try_write(std::uint64_t to, const std::byte* from,
                             std::size_t bytes) const noexcept {
  if (process_ == 0) return ESRCH;
  if (const int reason = try_recognize(); reason != 0) return reason;
  return copy_all(::process_vm_writev, process_, const_cast<std::byte*>(from), to, bytes);
}

bool ProcessMemory::can_read(ByteView memory) const noexcept {
  const auto reads = [this](const std::byte& from) {
    std::byte byte{};
    return try_read(&byte, reinterpret_cast<std::uintptr_t>(&from), 1) == 0;
  };
  return !memory.empty() && reads(memory.front()) && reads(memory.back());
}

bool copies_by_kernel_pay() {
  static const bool they_do = passes(kByOne);
  return they_do;
}

bool copies_by_kernel_pay_for_both() {
  static const bool they_do = copies_by_kernel_pay() || passes(kByBoth);
  return they_do;
}

}  // namespace catenary
