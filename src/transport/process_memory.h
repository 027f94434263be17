// ProcessMemory: what lies in another process of this machine, copied by the kernel
// (process_vm_readv, process_vm_writev).
//
// That is one copy in place of two for memory that cannot be mapped, and takes a system call and
// some work for each page. Whether it pays depends on the processor and the kernel, so it is
// measured.
//
// Threads: any. Nothing waits. Owner: none, it is a number. Failure: what cannot be copied is an
// answer, not an error, but for of().
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

#include "src/transport/shared_heap.h"

namespace catenary {

class ProcessMemory {
 public:
  ProcessMemory() = default;  // nobody's
  // Of the process that has this heap, of which map_heap() has proven that it is who it says.
  // Throws kSystem if the kernel does not let us.
  static ProcessMemory of(const HeapAddress& address);
  // Of this process.
  static ProcessMemory own() noexcept;

  explicit operator bool() const noexcept { return process_ != 0; }
  // 0, or the kernel's reason not to read: ESRCH where the process is not there any more.
  int try_read(std::byte* to, std::uint64_t from, std::size_t bytes) const noexcept;
  // The same in the other direction. Looks first whether the number is still that process's.
  int try_write(std::uint64_t to, const std::byte* from, std::size_t bytes) const noexcept;
  // Whether the kernel would read such memory: not devices', nor what is kept from it on purpose.
  // Looks at both ends.
  bool can_read(ByteView memory) const noexcept;

 private:
  using Token = std::array<std::byte, SharedHeap::kTokenBytes>;
  explicit ProcessMemory(pid_t process) : process_(process) {}
  // Whether the number is still that process's.
  int try_recognize() const noexcept;

  pid_t process_ = 0;
  std::uint64_t token_at_ = 0;
  std::optional<Token> token_;  // none of our own
};

// All that one rank can reach of another's memory: what it has mapped, and what the kernel copies.
struct PeerReach {
  PeerHeap heap;
  ProcessMemory process;
};
using PeerReacher = std::function<PeerReach()>;

// Whether such a copy takes so little longer than one by the processor that it is better than two
// through memory that both can map. Measured at the first call, in some 50 us.
bool copies_by_kernel_pay();
// Whether it is where sender and receiver have the kernel copy a part each, of more than caches
// hold. Measured at the first call, in a millisecond.
bool copies_by_kernel_pay_for_both();

// Who answers that.
struct KernelCopies {
  bool (*pay)() = copies_by_kernel_pay;
  bool (*pay_for_both)() = copies_by_kernel_pay_for_both;
};

}  // namespace catenary
