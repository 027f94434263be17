#include "bench/perf/memory.h"

#include <fstream>
#include <limits>
#include <string>

namespace catenary::perf {
namespace {

// The number, in KiB, behind `key` in a file of lines "Key:   123 kB".
std::size_t kibibytes_of(const char* path, const std::string& key) {
  std::ifstream file(path);
  std::string word;
  while (file >> word) {
    std::size_t value = 0;
    if (word == key && file >> value) return value;
    file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return 0;
}

}  // namespace

std::size_t available_memory() { return 1024 * kibibytes_of("/proc/meminfo", "MemAvailable:"); }
std::size_t resident_memory() { return 1024 * kibibytes_of("/proc/self/status", "VmRSS:"); }

}  // namespace catenary::perf
