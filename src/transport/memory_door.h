// A memory door: how one rank hands a memfd to other processes of its machine.
//
//     visitor                                           host
//     greeting                      ------->            is the visitor's user ours?
//                                   <-------            greeting
//     proof, terms, who I am        ------->            are the terms ours?
//     is the host's user ours?      <-------            proof, the memfd
//     "mapped"                      ------->            now the visitor counts
//
// The door is an abstract Unix socket with a random name: nothing lies on any filesystem, and
// nothing remains of a process that is killed. The name is no secret, since any local user can list
// it; whoever enters must run as the same user and prove the communicator's key, and so must the
// host. Strangers are dropped without a word and hold nobody up.
//
// Threads: one at a time per door. hand_out and fetch_memory wait, no longer than their Wait.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "src/base/clock.h"
#include "src/base/unique_fd.h"
#include "src/bootstrap/key.h"

namespace catenary {

using DoorName = std::array<std::byte, 16>;

// What host and visitors must agree on. Who lacks the key is a stranger and is ignored; who has
// other terms is one of ours that is set up otherwise, and need not be waited for.
struct DoorPact {
  Key key;
  std::string terms;
};

// From now on visitors may knock; they wait until hand_out. Throws kSystem.
UniqueFd open_door(const DoorName& name);

// Hands `memory` to the visitors 1 to members - 1, and returns who has mapped it (0, the host,
// has). Ends when each has come, or given up, or the wait is over. Throws nothing but
// std::bad_alloc.
std::vector<bool> hand_out(int door, int memory, int members, const DoorPact& pact,
                           const Wait& wait);

struct FetchedMemory {
  UniqueFd memory;
  UniqueFd visit;  // closing it before confirm_mapped tells the host that we gave up
};

// Throws kRemote if the host is gone, refuses us or cannot prove itself, kTimeout, kSystem.
FetchedMemory fetch_memory(const DoorName& name, int member, const DoorPact& pact,
                           const Wait& wait);
void confirm_mapped(const FetchedMemory& fetched);

}  // namespace catenary
