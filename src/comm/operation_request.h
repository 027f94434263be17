// What a caller asks of a communicator, already checked: values, no threads, no waiting.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "src/base/types.h"
#include "src/collective/operation.h"
#include "src/collective/partition.h"
#include "src/device/stream.h"
#include "src/engine/descriptor.h"
#include "src/engine/schedule_run.h"

namespace catenary {

// A reduction in terms of kernels: what combines, what scales on the way in, what divides at the
// end.
struct ResolvedReduction {
  Reduction name = Reduction::kNone;
  ReduceOp op = ReduceOp::kSum;
  Scaling scaling = {};
  std::int64_t divisor = 1;
};

struct OperationRequest {
  Collective kind = Collective::kAllReduce;
  const void* input = nullptr;
  void* output = nullptr;
  std::size_t count = 0;
  std::shared_ptr<const UnevenParts> parts = {};  // of an uneven collective
  DataType type = DataType::kInt8;
  ResolvedReduction reduction = {};
  int root = 0;  // the peer, for point-to-point
  Stream* stream = nullptr;
};

}  // namespace catenary
