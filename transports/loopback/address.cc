#include "transports/loopback/address.h"

#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>

#include "src/base/error.h"
#include "src/base/mapping.h"
#include "src/base/size_literals.h"

namespace catenary::loopback {
namespace {

struct ProcessToken {
  std::byte random[16];
  pid_t process;  // 0: not drawn yet
};

// A page that the kernel zeroes in a child, which tells it from its parent even where both have the
// same process id, each in its own namespace. Kernels before 4.14 refuse, and the process id alone
// must do. Never unmapped: ranks may outlive static objects.
ProcessToken& process_token() {
  static const Mapping& page = *[] {
    auto* mapping = new Mapping(Mapping::anonymous(4_KB));
    ::madvise(mapping->data(), mapping->bytes(), MADV_WIPEONFORK);
    return mapping;
  }();
  return *reinterpret_cast<ProcessToken*>(page.data());
}

}  // namespace

Bytes local_address() {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  ProcessToken& token = process_token();
  if (token.process != ::getpid()) {
    if (::getrandom(token.random, sizeof token.random, 0) != sizeof token.random) {
      throw_system_error("cannot draw random numbers", errno);
    }
    token.process = ::getpid();
  }
  Bytes address(sizeof token.random);
  std::memcpy(address.data(), token.random, sizeof token.random);
  return address;
}

bool reaches(ByteView address, ByteView peer_address) {
  return std::ranges::equal(address, peer_address);
}

}  // namespace catenary::loopback
