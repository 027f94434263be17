// The one error translator of the nccl* functions: exceptions inside, codes outside.
//
// An error is logged and kept for ncclGetLastError, and noted in the calling thread's group if one
// is open, so that ncclGroupEnd returns it too.
#pragma once

#include <exception>
#include <new>

#include "nccl.h"
#include "src/base/error.h"
#include "src/base/log.h"
#include "src/comm/group.h"

namespace catenary {

// The codes are NCCL's own, but for the timeout, which NCCL 2.27 has no name for.
ncclResult_t to_result(const Error& error) noexcept;
ncclResult_t translate_exception() noexcept;

template <typename Body>
ncclResult_t guarded(Body&& body) noexcept {
  try {
    body();
    return ncclSuccess;
  } catch (...) {
    return translate_exception();
  }
}

// For bodies that have a result of their own, such as ncclInProgress.
template <typename Body>
ncclResult_t guarded_result(Body&& body) noexcept {
  try {
    return body();
  } catch (...) {
    return translate_exception();
  }
}

}  // namespace catenary
