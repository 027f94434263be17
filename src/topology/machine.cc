#include "src/topology/machine.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <sstream>
#include <vector>

#include "src/base/size_literals.h"

namespace catenary {
namespace {

constexpr double kUnlimited = std::numeric_limits<double>::infinity();
constexpr std::size_t kUsualCacheBytes = 8_MB;
constexpr std::size_t kUsualSecondCacheBytes = 1_MB;
constexpr int kMostCores = 8192;

// "max 100000" or "150000 100000", as in cpu.max of v2.
double quota_v2(const std::string& folder) {
  std::ifstream file(folder + "/cpu.max");
  double quota = 0;
  double period = 0;
  if (!(file >> quota >> period) || quota <= 0 || period <= 0) return kUnlimited;
  return quota / period;
}

double quota_v1(const std::string& folder) {
  std::ifstream quota_file(folder + "/cpu.cfs_quota_us");
  std::ifstream period_file(folder + "/cpu.cfs_period_us");
  double quota = 0;
  double period = 0;
  if (!(quota_file >> quota) || !(period_file >> period) || quota <= 0 || period <= 0) {
    return kUnlimited;
  }
  return quota / period;
}

// The bytes below a limit that are not used; infinity if there is no such limit.
double bytes_below(const std::string& limit_path, const std::string& used_path) {
  std::ifstream limit_file(limit_path);
  std::ifstream used_file(used_path);
  double limit = 0;
  double used = 0;
  if (!(limit_file >> limit) || !(used_file >> used)) return kUnlimited;  // as with "max"
  return std::max(0.0, limit - used);
}

double memory_left_v2(const std::string& folder) {
  return bytes_below(folder + "/memory.max", folder + "/memory.current");
}

double memory_left_v1(const std::string& folder) {
  return bytes_below(folder + "/memory.limit_in_bytes", folder + "/memory.usage_in_bytes");
}

// A quota binds everything below it, so each ancestor counts. Within a container the path may lie
// outside of what is mounted; the root of the mount is then the group itself.
using QuotaOfFolder = double (*)(const std::string& folder);
double tightest(const std::string& mount, std::string path, QuotaOfFolder quota) {
  double least = quota(mount);
  while (path.size() > 1) {
    least = std::min(least, quota(mount + path));
    path.erase(path.find_last_of('/'));
  }
  return least;
}

bool has_controller(const std::string& controllers, const std::string& wanted) {
  std::istringstream list(controllers);
  for (std::string name; std::getline(list, name, ',');) {
    if (name == wanted) return true;
  }
  return false;
}

// Over all groups that a process belongs to, of either version.
double tightest_of_all(const std::string& membership, const std::string& mount,
                       const std::string& controller, QuotaOfFolder v2, QuotaOfFolder v1) {
  double least = kUnlimited;
  std::istringstream lines(membership);
  for (std::string line; std::getline(lines, line);) {  // id:controllers:path
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    if (controllers.empty()) {
      least = std::min(least, tightest(mount, path, v2));
    } else if (has_controller(controllers, controller)) {
      least = std::min(least, tightest(mount + "/" + controllers, path, v1));
      least = std::min(least, tightest(mount + "/" + controller, path, v1));
    }
  }
  return least;
}

// Those that the calling thread may run on; the first one if the system does not tell.
std::vector<int> allowed_cores() {
  cpu_set_t* set = CPU_ALLOC(kMostCores);
  const std::size_t bytes = CPU_ALLOC_SIZE(kMostCores);
  std::vector<int> cores;
  if (set != nullptr && ::sched_getaffinity(0, bytes, set) == 0) {
    for (int core = 0; core < kMostCores; ++core) {
      if (CPU_ISSET_S(static_cast<unsigned>(core), bytes, set)) cores.push_back(core);
    }
  }
  CPU_FREE(set);
  if (cores.empty()) cores.push_back(0);
  return cores;
}

std::string text_of(const char* path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

struct Cache {
  int level;
  std::size_t bytes;
};

std::vector<Cache> read_caches(int core) {
  const std::string folder = "/sys/devices/system/cpu/cpu" + std::to_string(core) + "/cache/index";
  std::vector<Cache> caches;
  for (int index = 0; index < 16; ++index) {
    std::ifstream size_file(folder + std::to_string(index) + "/size");
    std::ifstream level_file(folder + std::to_string(index) + "/level");
    std::string size;
    int level = 0;
    if (!(size_file >> size) || !(level_file >> level)) break;
    caches.push_back({level, parse_cache_bytes(size)});
  }
  return caches;
}

// Of those of the first core that was usable when this was first asked, of these levels; 0 if the
// system does not tell.
std::size_t largest_cache(int lowest_level, int highest_level) {
  static const std::vector<Cache> caches = read_caches(allowed_cores().front());
  std::size_t most = 0;
  for (const Cache& cache : caches) {
    if (cache.level >= lowest_level && cache.level <= highest_level)
      most = std::max(most, cache.bytes);
  }
  return most;
}

}  // namespace

double cgroup_quota(const std::string& membership, const std::string& mount) {
  return tightest_of_all(membership, mount, "cpu", quota_v2, quota_v1);
}

double cgroup_memory_left(const std::string& membership, const std::string& mount) {
  return tightest_of_all(membership, mount, "memory", memory_left_v2, memory_left_v1);
}

std::size_t memory_left_to_us() {
  const double left = cgroup_memory_left(text_of("/proc/self/cgroup"), "/sys/fs/cgroup");
  const std::size_t available = machine_memory().available_bytes;
  return left < static_cast<double>(available) ? static_cast<std::size_t>(left) : available;
}

int usable_cores() { return core_grant().usable; }

CoreGrant core_grant() {
  CoreGrant grant;
  const std::vector<int> cores = allowed_cores();
  for (const int core : cores) {
    const auto bit = static_cast<std::size_t>(core % CoreGrant::kMaskBits);
    grant.allowed[bit / 64] |= std::uint64_t{1} << (bit % 64);
  }
  const auto allowed = static_cast<int>(cores.size());
  const double quota = std::ceil(cgroup_quota(text_of("/proc/self/cgroup"), "/sys/fs/cgroup"));
  grant.usable = quota < allowed ? std::max(1, static_cast<int>(quota)) : allowed;
  return grant;
}

int CoreGrant::allowed_cores() const {
  int cores = 0;
  for (const std::uint64_t word : allowed) cores += std::popcount(word);
  return cores;
}

// A quota that is less than what is allowed may be one for all of them.
int shared_cores(std::span<const CoreGrant> grants) {
  CoreGrant together;
  int quota = std::numeric_limits<int>::max();
  for (const CoreGrant& grant : grants) {
    for (std::size_t i = 0; i < grant.allowed.size(); ++i) together.allowed[i] |= grant.allowed[i];
    if (grant.usable < grant.allowed_cores()) quota = std::min(quota, grant.usable);
  }
  return std::max(1, std::min(together.allowed_cores(), quota));
}

bool Crowd::is_tighter_than(const Crowd& other) const {
  const std::int64_t mine = std::int64_t{ranks} * other.cores;
  const std::int64_t theirs = std::int64_t{other.ranks} * cores;
  return mine != theirs ? mine > theirs : ranks > other.ranks;
}

Crowd crowd_of(std::span<const CoreGrant> sharing, std::span<const CoreGrant> on_kernel) {
  std::vector<CoreGrant> without_quota(on_kernel.begin(), on_kernel.end());
  for (CoreGrant& grant : without_quota) grant.usable = grant.allowed_cores();
  const Crowd near{std::max(1, static_cast<int>(sharing.size())), shared_cores(sharing)};
  const Crowd all{static_cast<int>(on_kernel.size()), shared_cores(without_quota)};
  return all.is_tighter_than(near) ? all : near;
}

int machine_cores() {
  const long cores = ::sysconf(_SC_NPROCESSORS_CONF);
  return cores > 0 ? static_cast<int>(cores) : 1;
}

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {  // "model name	: AMD EPYC ..."
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown processor";
}

std::size_t parse_cache_bytes(const std::string& text) {
  char* unit = nullptr;
  const unsigned long long number = std::strtoull(text.c_str(), &unit, 10);
  switch (unit == text.c_str() ? '?' : *unit) {
    case '\0':
    case '\n': return number;
    case 'K': return number * 1_KB;
    case 'M': return number * 1_MB;
    default: return 0;
  }
}

std::string boot_id() {
  std::string id;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), id);
  return id;
}

std::size_t last_level_cache_bytes() {
  const std::size_t most = largest_cache(1, std::numeric_limits<int>::max());
  return most != 0 ? most : kUsualCacheBytes;
}

std::size_t second_level_cache_bytes() {
  const std::size_t most = largest_cache(2, 2);
  return most != 0 ? most : kUsualSecondCacheBytes;
}

MachineMemory machine_memory() {
  MachineMemory memory = {0, 0};
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {  // "MemTotal:       16384 kB"
    std::istringstream words(line);
    std::string name;
    std::size_t kilobytes = 0;
    words >> name >> kilobytes;
    if (name == "MemTotal:") memory.total_bytes = kilobytes * 1_KB;
    if (name == "MemAvailable:") memory.available_bytes = kilobytes * 1_KB;
  }
  return memory;
}

// "cpu3 user nice system idle iowait irq softirq steal ...": what guests take is in user already.
CoreTime core_time(const std::string& stat, std::span<const int> cores, double ticks) {
  constexpr int kCounts = 8;
  CoreTime time = {0, 0};
  std::istringstream lines(stat);
  for (std::string line; std::getline(lines, line);) {
    const auto is_of = [&](int core) {
      return line.starts_with("cpu" + std::to_string(core) + " ");
    };
    if (std::ranges::none_of(cores, is_of)) continue;
    std::istringstream words(line);
    std::string name;
    words >> name;
    double count = 0;
    for (int i = 0; i < kCounts && words >> count; ++i) {
      const bool is_idle = i == 3 || i == 4;
      time.all_s += count / ticks;
      if (!is_idle) time.busy_s += count / ticks;
    }
  }
  return time;
}

CoreTime core_time() {
  const long ticks = ::sysconf(_SC_CLK_TCK);
  if (ticks <= 0) return {0, 0};
  return core_time(text_of("/proc/stat"), allowed_cores(), static_cast<double>(ticks));
}

}  // namespace catenary
