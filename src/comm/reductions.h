// Reductions: what ncclRedOp_t values mean to one communicator, the user's own included.
//
// Threads: any (internal mutex). Nothing waits. Failure: kInvalidArgument.
#pragma once

#include <mutex>
#include <vector>

#include "src/comm/operation_request.h"

namespace catenary {

class Reductions {
 public:
  explicit Reductions(int nranks);

  // The value of a new operation that multiplies by a scalar of `type` and sums.
  int create_pre_mul_sum(DataType type, const Scaling& scaling);
  void destroy(int value);
  ResolvedReduction resolve(int value, DataType type) const;

 private:
  struct UserOp {
    bool alive = false;
    DataType type = DataType::kInt8;
    Scaling scaling = {};
  };
  std::size_t slot_of(int value) const;
  ResolvedReduction average(DataType type) const;

  const int nranks_;
  const int first_value_;  // of the user's operations; of no other communicator near
  mutable std::mutex mutex_;
  std::vector<UserOp> user_ops_;  // guarded by mutex_
};

}  // namespace catenary
