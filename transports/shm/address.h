// The address of shared memory: what must be the same for two processes to share any, the door at
// which a rank hands it out, and where memory of its own can be read.
//
// Any thread; nothing waits.
#pragma once

#include <optional>
#include <string>

#include "src/transport/memory_door.h"
#include "src/transport/shared_heap.h"

namespace catenary::shm {

// The kernel (boot id), the network namespace (abstract sockets have one each), the user and the
// user namespace (who may pass descriptors to whom), and NCCL_HOSTID, as text. Nullopt if the
// kernel does not say: then no memory is shared.
std::optional<std::string> local_neighbourhood(const std::string& host_id);

Bytes make_address(const DoorName& door, const std::string& neighbourhood, const HeapAddress& heap);

struct Address {
  DoorName door;
  HeapAddress heap;
  std::string neighbourhood;
};
// Nullopt for what is no such address, as a rank without shared memory has.
std::optional<Address> parse_address(ByteView address);

// Whether both are addresses of one neighbourhood.
bool reaches(ByteView address, ByteView peer_address);

}  // namespace catenary::shm
