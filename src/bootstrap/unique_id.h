// UniqueId: 128 bytes that bring the ranks of one communicator together.
//
//     magic 4 | version 1 | flags 1 | port 2 | host 16 | scope 4 | job 16 | secret 32 | zero 36 |
//     sum 16
//
// It says where the root service listens and carries the secret that every rank proves to hold. So
// it is itself a secret: it is never logged, and nobody should. Values; only create_unique_id
// waits, and only to resolve a name.
#pragma once

#include <array>

#include "src/base/config.h"
#include "src/base/types.h"
#include "src/bootstrap/key.h"
#include "src/bootstrap/socket_address.h"

namespace catenary {

struct UniqueId {
  std::array<std::byte, 128> bytes;
};

// What the bytes mean.
struct Rendezvous {
  SocketAddress root;
  // Given by NCCL_COMM_ID: nobody listens there until rank 0 comes.
  bool fixed_address = false;
  std::array<std::byte, 16> job{};
  Key secret{};
};

UniqueId encode_unique_id(const Rendezvous& rendezvous);
// Throws Error(kInvalidArgument) if they are not an id of this version of the library.
Rendezvous decode_unique_id(const UniqueId& id);

// A new id, whose root service starts listening in this process, on the interface that `config`
// chooses. With config.comm_id it holds that address, and no service is started: the Membership of
// rank 0 does that. Throws Error: kInvalidUsage, kInvalidArgument for a bad configuration, kSystem.
UniqueId create_unique_id(const Config& config);

}  // namespace catenary
