#include "bench/perf/launcher.h"

#include <dlfcn.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <cstdlib>

#include "bench/perf/failure.h"

namespace catenary::perf {
namespace {

class SingleProcess final : public Launcher {
 public:
  Place place() const override { return {}; }
  void barrier() override {}
  void broadcast(std::span<std::byte>, int) override {}
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    if (!mine.empty()) std::memcpy(all.data(), mine.data(), mine.size());
  }
  void limit_waiting(std::chrono::seconds) override {}
  void abort() override {}
};

std::string directory_of_executable() {
  std::array<char, PATH_MAX> path{};
  const ssize_t bytes = readlink("/proc/self/exe", path.data(), path.size() - 1);
  if (bytes < 0) throw_errno("readlink /proc/self/exe", errno);
  const std::string full(path.data(), static_cast<std::size_t>(bytes));
  return full.substr(0, full.rfind('/'));
}

// After a build in lib/ beside bin/; once installed in a folder of the library's.
void* open_mpi_module() {
  const std::string here = directory_of_executable();
  std::string tried;
  for (const char* folder : {"/../lib/", CATENARY_INSTALLED_MODULES}) {
    const std::string path = here + folder + kMpiModuleFile;
    if (access(path.c_str(), R_OK) != 0) {
      tried += " " + path;
      continue;
    }
    // Global: Open MPI's own plug-ins look libmpi's symbols up in the global scope.
    if (void* module = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL)) return module;
    throw TestFailure(failure_line("launcher", dlerror(), std::source_location::current()));
  }
  throw TestFailure(failure_line(
      "launcher",
      "started by mpirun, but the module for MPI is not there (it is built where CMake finds MPI); "
      "use --procs instead, or unset OMPI_COMM_WORLD_SIZE; looked for" +
          tried,
      std::source_location::current()));
}

std::unique_ptr<Launcher> join_mpirun(int* argc, char*** argv) {
  void* module = open_mpi_module();  // stays loaded: MPI cannot be unloaded
  auto* entry = reinterpret_cast<MpiModuleEntry>(dlsym(module, kMpiModuleEntry));
  if (entry == nullptr) {
    throw TestFailure(failure_line("launcher", dlerror(), std::source_location::current()));
  }
  return std::unique_ptr<Launcher>(entry(argc, argv));
}

int number_in_environment(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoi(text);
}

}  // namespace

Place mpirun_place() {
  for (const auto& [size, rank] : {std::pair{"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"},
                                   std::pair{"PMI_SIZE", "PMI_RANK"}}) {
    const int processes = number_in_environment(size, 0);
    if (processes > 0) return {number_in_environment(rank, 0), processes, 0, processes};
  }
  return {0, 0, 0, 0};
}

std::unique_ptr<Launcher> make_launcher(int procs, int* argc, char*** argv) {
  if (mpirun_place().processes > 0) {
    if (procs > 1) {
      throw UsageError("--procs " + std::to_string(procs) +
                       " cannot be combined with mpirun, which has started the processes already");
    }
    return join_mpirun(argc, argv);
  }
  if (procs > 1) return fork_processes(procs);
  if (std::unique_ptr<Launcher> job = join_job()) return job;
  return std::make_unique<SingleProcess>();
}

}  // namespace catenary::perf
