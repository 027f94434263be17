// What users' arguments are checked for in many calls. Throws Error with the text that users read.
#pragma once

#include "src/base/error.h"

namespace catenary {

inline void check_pointer(const void* pointer, const char* function, const char* argument) {
  if (pointer != nullptr) return;
  throw_error(ErrorCode::kInvalidArgument, "%s : %s argument is NULL", function, argument);
}

// `what`: rank, root or peer.
inline void check_rank(int rank, int nranks, const char* function, const char* what) {
  if (rank >= 0 && rank < nranks) return;
  throw_error(ErrorCode::kInvalidArgument, "%s : invalid %s %d (%s should be in the 0..%d range)",
              function, what, rank, what, nranks - 1);
}

}  // namespace catenary
