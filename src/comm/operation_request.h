// What a caller asks of a communicator, already checked: values, no threads, no waiting.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

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

// A collective.
struct OperationRequest {
  Collective kind = Collective::kAllReduce;
  const void* input = nullptr;
  void* output = nullptr;
  std::size_t count = 0;
  std::shared_ptr<const UnevenParts> parts = {};  // of an uneven collective
  DataType type = DataType::kInt8;
  ResolvedReduction reduction = {};
  int root = 0;
  std::uint32_t mark = 0;  // the caller's own: must be alike on all ranks
  Stream* stream = nullptr;
};

// A send or a receive.
struct MessageRequest {
  void* buffer = nullptr;  // only read, if it is sent
  std::size_t count = 0;
  Stream* stream = nullptr;
  int peer = 0;
  DataType type = DataType::kInt8;
  bool sends = false;
};

// As both ends call it, if it is the so-manieth from one to the other.
inline Descriptor opening_of(const MessageRequest& message, std::uint64_t number) {
  return {.sequence = static_cast<std::uint32_t>(number),
          .kind = Collective::kSend,
          .type = message.type,
          .reduction = Reduction::kNone,
          .count = message.count};
}

// What goes together: all that a group has for one communicator, or a single one.
struct Requests {
  std::span<const OperationRequest> operations;
  std::span<const MessageRequest> messages;

  std::size_t size() const { return operations.size() + messages.size(); }
  Stream& first_stream() const {
    return operations.empty() ? *messages.front().stream : *operations.front().stream;
  }
  bool on_one_stream() const {
    const Stream* const first = &first_stream();
    for (const OperationRequest& request : operations) {
      if (request.stream != first) return false;
    }
    for (const MessageRequest& message : messages) {
      if (message.stream != first) return false;
    }
    return true;
  }
  // Once for each request.
  template <typename Visit>
  void for_each_stream(Visit&& visit) const {
    for (const OperationRequest& request : operations) visit(*request.stream);
    for (const MessageRequest& message : messages) visit(*message.stream);
  }
};

}  // namespace catenary
