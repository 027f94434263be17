#include "src/transport/shared_heap.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <string_view>
#include <utility>

#include "src/base/error.h"
#include "src/transport/process_runs.h"

namespace catenary {
namespace {

// 0 if the kernel does not say.
std::uint64_t process_namespace() {
  struct stat status = {};
  return ::stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 0;
}

bool has_number_here(const HeapAddress& address) {
  return address.process_namespace != 0 && address.process_namespace == process_namespace();
}

struct OpenHeap {
  UniqueFd fd;
  bool is_writable = false;
};

// Opens nothing but a memfd: to open what else a descriptor may stand for can have consequences.
OpenHeap open_heap(const HeapAddress& address) {
  if (!has_number_here(address)) {
    throw_error(ErrorCode::kSystem, "its process has no number here (another pid namespace)");
  }
  const std::string path = format("/proc/%u/fd/%d", address.process, address.fd);
  char target[64] = {};
  if (::readlink(path.c_str(), target, sizeof target - 1) < 0)
    throw_system_error("cannot look at " + path, errno);
  if (!std::string_view(target).starts_with("/memfd:"))
    throw_error(ErrorCode::kSystem, "%s is no memory", path.c_str());
  constexpr int kFlags = O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
  UniqueFd fd(::open(path.c_str(), O_RDWR | kFlags));
  const bool is_writable = static_cast<bool>(fd);
  if (!fd) fd = UniqueFd(::open(path.c_str(), O_RDONLY | kFlags));
  if (!fd) throw_system_error("cannot open " + path, errno);
  check_memfd(fd.get(), address.bytes);
  struct statfs file_system = {};
  // Other memory may have holes that nothing fills.
  if (::fstatfs(fd.get(), &file_system) != 0 || file_system.f_type != TMPFS_MAGIC)
    throw_error(ErrorCode::kSystem, "%s is memory of another kind", path.c_str());
  return {std::move(fd), is_writable};
}

// Which file it is: nobody else's can pass for it.
using FileId = std::pair<dev_t, ino_t>;
FileId file_id(int fd) {
  struct stat status = {};
  if (::fstat(fd, &status) != 0) throw_system_error("cannot stat a peer's memory", errno);
  return {status.st_dev, status.st_ino};
}

// Process-wide, because address space is: communicators share what they map. Holds nothing alive.
struct Registry {
  std::mutex mutex;
  // By file, and whether it can be written to.
  std::map<std::pair<FileId, bool>, std::weak_ptr<const Mapping>> mappings;
};

// Never destroyed: ranks may outlive static objects.
Registry& registry() {
  static Registry& instance = *new Registry;
  return instance;
}

std::shared_ptr<const Mapping> mapping_of(const OpenHeap& heap, std::size_t bytes) {
  Registry& known = registry();
  const std::lock_guard lock(known.mutex);
  std::erase_if(known.mappings, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<const Mapping>& entry = known.mappings[{file_id(heap.fd.get()), heap.is_writable}];
  std::shared_ptr<const Mapping> mapping = entry.lock();
  if (mapping == nullptr) {
    mapping =
        std::make_shared<const Mapping>(Mapping::of_peer(heap.fd.get(), bytes, heap.is_writable));
    entry = mapping;
  }
  return mapping;
}

}  // namespace

HeapAddress address_of(const SharedHeap& heap) {
  HeapAddress address;
  if (heap.base == nullptr) return address;
  address.bytes = heap.bytes;
  address.base = reinterpret_cast<std::uintptr_t>(heap.base);
  address.process_namespace = process_namespace();
  address.process = static_cast<std::uint32_t>(::getpid());
  address.fd = heap.fd;
  std::memcpy(address.token.data(), heap.base, address.token.size());
  return address;
}

bool has_ended(const HeapAddress& address) {
  return has_number_here(address) && !process_runs(address.process);
}

PeerHeap map_heap(const HeapAddress& address) {
  if (address.bytes <= SharedHeap::kTokenBytes)
    throw_error(ErrorCode::kSystem, "it has no memory that could be read in place");
  const OpenHeap heap = open_heap(address);
  std::shared_ptr<const Mapping> mapping = mapping_of(heap, address.bytes);
  if (std::memcmp(mapping->data(), address.token.data(), address.token.size()) != 0)
    throw_error(ErrorCode::kSystem, "another process has taken its number");
  return {mapping, mapping->data(), mapping->bytes(), heap.is_writable};
}

}  // namespace catenary
