// Ranks as processes on several hosts, for the tests in this folder.
#pragma once

#include <cstdlib>
#include <functional>
#include <string>

#include "tests/support/crew.h"
#include "tests/support/hosts.h"
#include "tests/support/processes.h"
#include "tests/support/rank_group.h"

namespace catenary::testing {

// As they are numbered by most launchers: those of a host after each other.
struct HostShape {
  int hosts;
  int per_host;
  constexpr int ranks() const { return hosts * per_host; }
  int host_of(int rank) const { return rank / per_host; }
};

// The environment is the rank's own: the library reads it when it is first used.
inline void settle_on(const Hosts& hosts, const HostShape& shape, int rank) {
  hosts.enter(shape.host_of(rank));
  ::setenv("NCCL_DEBUG", "WARN", 0);
}

inline ncclComm_t join(int rank, int nranks, Board& board, int which = 0) {
  ncclComm_t comm = nullptr;
  require_success(ncclCommInitRank(&comm, nranks, board.id(rank == 0, which), rank),
                  "ncclCommInitRank");
  return comm;
}

}  // namespace catenary::testing
