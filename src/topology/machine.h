// What this machine grants to this process: cores, caches, memory.
//
// Any thread; reads /proc and /sys anew at each call, so callers keep the answer. Nothing waits.
// Nothing fails: what cannot be read counts as unlimited, or as a usual value.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace catenary {

// How many threads can run at once: the affinity mask of the calling thread, cut by the CPU quota
// of the control groups (v1 and v2) that the process is in, rounded up. At least 1.
int usable_cores();

// What a process may use, in a form that others can be told: core n is bit n modulo kMaskBits.
struct CoreGrant {
  static constexpr int kMaskBits = 1024;
  bool has(int core) const {
    const auto bit = static_cast<std::size_t>(core % kMaskBits);
    return (allowed[bit / 64] >> (bit % 64) & 1) != 0;
  }

  int allowed_cores() const;

  std::array<std::uint64_t, kMaskBits / 64> allowed{};
  std::int32_t usable = 1;  // as usable_cores()
};
CoreGrant core_grant();
// How many threads of such processes of one machine can run at once. Processes that are bound to a
// core each have as many cores as there are processes.
int shared_cores(std::span<const CoreGrant> grants);

// Ranks, and the cores that they share.
struct Crowd {
  int ranks = 1;
  int cores = 1;
  // Fewer cores for each, or as many for more of them.
  bool is_tighter_than(const Crowd& other) const;
};
// Of a rank's machine: of those that share memory with it, each of which may be bound to a core of
// its own, or of all on its kernel, if there is less room for those. Containers of one machine are
// hosts to each other, but their ranks take each other's cores. Each may have a quota to itself, so
// none of those counts for all.
Crowd crowd_of(std::span<const CoreGrant> sharing, std::span<const CoreGrant> on_kernel);

// Of the whole machine, whatever this process may use of it.
int machine_cores();
// What the processor calls itself; "unknown processor" if the system does not tell.
std::string processor_name();

// What this start of the kernel is called; containers and namespaces of a machine have it
// in common. Empty if the system does not tell.
std::string boot_id();

// Bytes of the largest cache that the first usable core sees; 8 MiB if the system does not tell.
std::size_t last_level_cache_bytes();
// Of its cache of the second level, which mostly a core has to itself; 1 MiB if the system does not
// tell.
std::size_t second_level_cache_bytes();

// Bytes of the machine's memory, and those that could be had now without swapping; 0 if the system
// does not tell.
struct MachineMemory {
  std::size_t total_bytes;
  std::size_t available_bytes;
};
MachineMemory machine_memory();
// What this process could have of it now, by the limits of its control groups, too.
std::size_t memory_left_to_us();

// What the cores that the calling thread may run on have done since the machine started, together:
// something, and anything at all. Both 0 if the system does not tell.
struct CoreTime {
  double busy_s;
  double all_s;
};
CoreTime core_time();
// The same of some cores, of what /proc/stat says: `ticks` are a second.
CoreTime core_time(const std::string& stat, std::span<const int> cores, double ticks);

// The tightest CPU quota, in cores, of a process whose /proc/<pid>/cgroup is `membership`, with the
// cgroup file systems mounted at `mount`. Infinity if there is none.
double cgroup_quota(const std::string& membership, const std::string& mount);
// The same of the bytes of memory that its groups may use and do not.
double cgroup_memory_left(const std::string& membership, const std::string& mount);

// "32768K" as bytes; 0 if it is not of that form.
std::size_t parse_cache_bytes(const std::string& text);

}  // namespace catenary
