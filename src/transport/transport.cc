#include "src/transport/transport.h"

#include "src/base/error.h"

namespace catenary {

ByteView RecvLink::borrow(const Loan&, std::byte*, bool) {
  throw_error(ErrorCode::kRemote, "a peer lent what cannot be borrowed; its process is faulty");
}

LostConnection::LostConnection(int rank, int peer, const std::string& why)
    : Error(ErrorCode::kRemote,
            format("rank %d lost the connection to rank %d: %s", rank, peer, why.c_str())),
      peer_(peer) {}

}  // namespace catenary
