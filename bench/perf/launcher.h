// Launcher: how the processes of one run came to be, and the few words they exchange.
//
// Four kinds: one process alone; processes that the tool forked itself (--procs N); processes that
// mpirun started (the MPI part is a module, loaded only then); processes that something else
// started, which says in the environment who each of them is. Threads: one thread of each process
// calls, and all processes call the same things in the same order. Every call waits for the other
// processes. A process that is gone makes the call throw, or the launcher ends all processes.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace catenary::perf {

// Where a process stands among all, and among those of its machine.
struct Place {
  int process = 0;
  int processes = 1;
  int local_process = 0;
  int local_processes = 1;
};

class Launcher {
 public:
  virtual ~Launcher() = default;

  virtual Place place() const = 0;
  virtual void barrier() = 0;
  // `root`'s bytes become everyone's.
  virtual void broadcast(std::span<std::byte> bytes, int root) = 0;
  // Everyone's bytes, in process order; `all` is processes times as long as `mine`.
  virtual void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) = 0;
  // From now on a call that waits longer for another process throws, where the launcher can tell.
  virtual void limit_waiting(std::chrono::seconds most) = 0;
  // Ends the other processes, where nobody would notice that this one is about to fail.
  virtual void abort() = 0;
};

// `value` of every process, in process order.
template <typename T>
std::vector<T> all_gather(Launcher& launcher, std::span<const T> mine) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::vector<T> all(mine.size() * static_cast<std::size_t>(launcher.place().processes));
  launcher.all_gather(std::as_bytes(mine), std::as_writable_bytes(std::span<T>(all)));
  return all;
}

// What mpirun (Open MPI's, or one that speaks PMI) put into the environment; processes == 0 if
// nothing.
Place mpirun_place();

// The launcher for this run: MPI if mpirun started us, forked if `procs` > 1, that of a job if the
// environment tells of one, else alone. With
// `procs` > 1 this returns only in the children; the calling process stays behind to watch over
// them and exits with their status.
std::unique_ptr<Launcher> make_launcher(int procs, int* argc, char*** argv);

// The parts of make_launcher that live in files of their own.
std::unique_ptr<Launcher> fork_processes(int procs);
// By torchrun's RANK and WORLD_SIZE, or srun's SLURM_PROCID and SLURM_NTASKS with NCCL_COMM_ID;
// null if there are none, or one process is all. Throws UsageError if they make no sense.
std::unique_ptr<Launcher> join_job();

// What the MPI module exports, under the name kMpiModuleEntry.
using MpiModuleEntry = Launcher* (*)(int* argc, char*** argv);
inline constexpr const char* kMpiModuleEntry = "catenary_launcher_mpi";
inline constexpr const char* kMpiModuleFile = "catenary_launcher_mpi.so";

}  // namespace catenary::perf
