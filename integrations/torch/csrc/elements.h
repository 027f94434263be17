// How torch's data types and reductions are told to the library.
//
// The library reduces 12 types by sum, product, minimum, maximum, average and sum with a factor.
// All else is either the same thing in other words (a bool's sum is a byte's maximum; a complex
// number is two reals), or done on another type and converted back (16-bit integers), or composed:
// everybody's input is gathered and folded here (bitwise operations).
//
// Threads: any. Nothing waits. Failure: c10::Error with what is not supported.
#pragma once

#include <ATen/ATen.h>
#include <nccl.h>

#include <torch/csrc/distributed/c10d/Types.hpp>

#include "library.h"

namespace catenary_torch {

// For moving: the type of the same size that the library knows, or bytes, and how many of those
// make one element.
struct Moved {
  ncclDataType_t type;
  std::size_t per_element;
};
Moved moved(at::ScalarType type);

// A reduction as the library is to do it.
struct Reduced {
  bool folded = false;                      // not by the library: gather, then fold()
  at::ScalarType computed_as = at::kFloat;  // differs from the tensor's type: convert, and back
  ncclDataType_t type = ncclFloat;
  ncclRedOp_t op = ncclSum;  // ncclNumOps: a sum with a factor
};
Reduced reduced(const c10d::ReduceOp& op, at::ScalarType type);

const char* name_of(c10d::ReduceOp::RedOpType op);

// Combines the rows of `gathered` by a bitwise operation.
at::Tensor fold(const at::Tensor& gathered, const c10d::ReduceOp& op);

// The library's name for a reduction on one communicator, for one call.
class ScopedOp {
 public:
  ScopedOp(const Reduced& how, const c10d::ReduceOp& op, Communicator& communicator);
  ~ScopedOp();
  ScopedOp(const ScopedOp&) = delete;
  ScopedOp& operator=(const ScopedOp&) = delete;
  ncclRedOp_t get() const { return op_; }

 private:
  ncclRedOp_t op_;
  ncclComm_t made_on_ = nullptr;
};

}  // namespace catenary_torch
