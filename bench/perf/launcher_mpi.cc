// The MPI launcher: a module of its own, so that the tools need libmpi only under mpirun.
#include <mpi.h>

#include <cstdlib>

#include "bench/perf/launcher.h"

namespace catenary::perf {
namespace {

int as_count(std::size_t bytes) {
  // What the processes exchange are ids and times: kilobytes.
  if (bytes > 1u << 30) std::abort();
  return static_cast<int>(bytes);
}

// MPI's default error handler ends all processes, so no call's result is looked at.
class MpiProcess final : public Launcher {
 public:
  MpiProcess(int* argc, char*** argv) {
    int provided = 0;
    MPI_Init_thread(argc, argv, MPI_THREAD_SERIALIZED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &place_.process);
    MPI_Comm_size(MPI_COMM_WORLD, &place_.processes);
    MPI_Comm machine;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine);
    MPI_Comm_rank(machine, &place_.local_process);
    MPI_Comm_size(machine, &place_.local_processes);
    MPI_Comm_free(&machine);
  }

  ~MpiProcess() override { MPI_Finalize(); }

  Place place() const override { return place_; }

  void barrier() override { MPI_Barrier(MPI_COMM_WORLD); }

  void broadcast(std::span<std::byte> bytes, int root) override {
    MPI_Bcast(bytes.data(), as_count(bytes.size()), MPI_BYTE, root, MPI_COMM_WORLD);
  }

  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    MPI_Allgather(mine.data(), as_count(mine.size()), MPI_BYTE, all.data(), as_count(mine.size()),
                  MPI_BYTE, MPI_COMM_WORLD);
  }

  void limit_waiting(std::chrono::seconds) override {}  // MPI has no deadlines

  void abort() override { MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE); }

 private:
  Place place_;
};

}  // namespace

extern "C" __attribute__((visibility("default"))) Launcher* catenary_launcher_mpi(int* argc,
                                                                                  char*** argv) {
  return new MpiProcess(argc, argv);
}

}  // namespace catenary::perf
