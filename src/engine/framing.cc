#include "src/engine/framing.h"

namespace catenary {

Error wrong_length(int rank, const Descriptor& mine, int peer, ByteView message, bool opening,
                   std::size_t bytes) {
  const std::size_t due = (opening ? opening_bytes(bytes) : 0) + bytes;
  return {ErrorCode::kRemote, format("rank %d sent %zu bytes to rank %d where %zu belong to %s",
                                     peer, message.size(), rank, due, describe(mine).c_str())};
}

Error withdrawn(int rank, const Descriptor& mine, int peer) {
  return {ErrorCode::kRemote, format("rank %d gave up %s while rank %d was reading its memory",
                                     peer, describe(mine).c_str(), rank)};
}

}  // namespace catenary
