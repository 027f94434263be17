#include "src/engine/framing.h"

namespace catenary {

Error wrong_length(int rank, const Descriptor& mine, int peer, std::size_t sent, std::size_t due) {
  return {ErrorCode::kRemote, format("rank %d sent %zu bytes to rank %d where %zu belong to %s",
                                     peer, sent, rank, due, describe(mine).c_str())};
}

Error withdrawn(int rank, const Descriptor& mine, int peer) {
  return {ErrorCode::kRemote, format("rank %d gave up %s while rank %d was reading its memory",
                                     peer, describe(mine).c_str(), rank)};
}

}  // namespace catenary
