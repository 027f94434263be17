#include "transports/shm/address.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "src/base/error.h"
#include "src/topology/machine.h"

namespace catenary::shm {
namespace {

// Namespaces are files; equal inodes mean the same namespace, on one kernel. The thread's own,
// because threads of a process may live in different network namespaces.
std::optional<std::string> namespace_id(const char* name) {
  struct stat status = {};
  if (::stat(format("/proc/thread-self/ns/%s", name).c_str(), &status) != 0) return std::nullopt;
  return format("%s:%llu", name, static_cast<unsigned long long>(status.st_ino));
}

}  // namespace

std::optional<std::string> local_neighbourhood(const std::string& host_id) {
  const std::string boot = boot_id();
  const std::optional<std::string> network = namespace_id("net");
  const std::optional<std::string> users = namespace_id("user");
  if (boot.empty() || !network || !users) return std::nullopt;
  return format("%s %s %s uid:%u host:%s", boot.c_str(), network->c_str(), users->c_str(),
                static_cast<unsigned>(::geteuid()), host_id.c_str());
}

Bytes make_address(const DoorName& door, const std::string& neighbourhood,
                   const HeapAddress& heap) {
  Bytes address(door.begin(), door.end());
  const ByteView heap_bytes = std::as_bytes(std::span(&heap, 1));
  address.insert(address.end(), heap_bytes.begin(), heap_bytes.end());
  const ByteView text = bytes_of(neighbourhood);
  address.insert(address.end(), text.begin(), text.end());
  return address;
}

std::optional<Address> parse_address(ByteView address) {
  Address parsed;
  constexpr std::size_t kDoorBytes = sizeof parsed.door;
  if (address.size() <= kDoorBytes + sizeof parsed.heap) return std::nullopt;
  std::ranges::copy(address.first(kDoorBytes), parsed.door.begin());
  std::memcpy(&parsed.heap, address.data() + kDoorBytes, sizeof parsed.heap);
  const ByteView text = address.subspan(kDoorBytes + sizeof parsed.heap);
  parsed.neighbourhood.assign(reinterpret_cast<const char*>(text.data()), text.size());
  return parsed;
}

bool reaches(ByteView address, ByteView peer_address) {
  const std::optional<Address> ours = parse_address(address);
  const std::optional<Address> theirs = parse_address(peer_address);
  return ours && theirs && ours->neighbourhood == theirs->neighbourhood;
}

}  // namespace catenary::shm
