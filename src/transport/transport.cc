#include "src/transport/transport.h"

#include "src/base/error.h"

namespace catenary {

ByteView RecvLink::borrow(const Loan&) {
  throw_error(ErrorCode::kRemote, "a peer lent what cannot be borrowed; its process is faulty");
}

}  // namespace catenary
