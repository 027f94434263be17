#include "transports/ofi/library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <mutex>
#include <new>
#include <optional>

#include "src/base/error.h"

namespace catenary::ofi {
namespace {

constexpr const char* kFile = "libfabric.so.1";

template <typename Function>
void find(void* handle, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(handle, name));
  if (function == nullptr) {
    throw_error(ErrorCode::kSystem, "%s has no function %s: it is too old", kFile, name);
  }
}

// Never unloaded: its providers leave threads and handlers behind.
Library load() {
  void* const handle = ::dlopen(kFile, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    throw_error(ErrorCode::kSystem, "libfabric cannot be loaded: %s", ::dlerror());
  }
  Library found;
  find(handle, "fi_getinfo", found.getinfo);
  find(handle, "fi_freeinfo", found.freeinfo);
  find(handle, "fi_dupinfo", found.dupinfo);
  find(handle, "fi_fabric", found.open_fabric);
  find(handle, "fi_strerror", found.strerror);
  find(handle, "fi_version", found.version);
  return found;
}

// Where libfabric's own words say little of what to do.
const char* remedy(int number) {
  switch (number) {
    case FI_EHOSTUNREACH:
      return "no way to that host: a firewall, or on EC2 the security group, which must allow all "
             "traffic within itself";
    case FI_ECONNABORTED: return "the peer no longer answers";
    case FI_ENOTCONN: return "the connection was closed, or the peer's process is gone";
    case FI_ECONNREFUSED: return "nobody listens there: the peer's process is gone";
    case FI_ENORX: return "the peer had no buffer for it for too long: it does not run";
    case FI_ENOMEM:
      return "no memory, or more was to be locked than `ulimit -l` allows: raise it to unlimited";
    case FI_EACCES:
      return "the peer does not let that memory be written, or a router forbids the way";
    case FI_ETRUNC: return "a message was longer than any of ours";
    case FI_ECANCELED: return "given up, because the connection failed";
    case FI_ENODATA: return "there is no such provider here";
    default: return nullptr;
  }
}

}  // namespace

const Library& library() {
  static std::mutex mutex;
  static std::optional<Library> loaded;
  const std::lock_guard lock(mutex);
  if (!loaded) loaded = load();
  return *loaded;
}

Info copy_of(const fi_info* info) {
  Info copy(library().dupinfo(info));
  if (!copy) throw std::bad_alloc();
  return copy;
}

std::string error_text(int number) {
  number = std::abs(number);
  const std::string text = format("%s (%d)", library().strerror(number), number);
  const char* const words = remedy(number);
  return words == nullptr ? text : text + ", " + words;
}

void throw_fabric_error(const std::string& what, int number) {
  throw_error(ErrorCode::kSystem, "libfabric: %s: %s", what.c_str(), error_text(number).c_str());
}

}  // namespace catenary::ofi
