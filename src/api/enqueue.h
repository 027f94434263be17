// From a call of a collective, or of a send or receive, to an operation under way.
//
// Threads: any. Nothing waits: within a group the operation is collected, else submitted. Failure:
// throws Error for arguments that cannot be.
#pragma once

#include <memory>

#include "nccl.h"
#include "src/base/types.h"
#include "src/comm/operation_request.h"

namespace catenary {

// What the caller gave, as it gave it.
struct Given {
  const char* function;
  Collective kind;
  const void* send;
  void* receive;
  std::size_t count;
  ncclDataType_t type;
  int op;  // -1: the collective does not reduce
  int root;
  ncclComm_t comm;
  cudaStream_t stream;
  std::shared_ptr<const UnevenParts> parts = {};  // of an uneven collective; `count` is their sum
};

// The same of a send or a receive.
struct GivenMessage {
  const char* function;
  bool sends;
  void* buffer;
  std::size_t count;
  ncclDataType_t type;
  int peer;
  ncclComm_t comm;
  cudaStream_t stream;
};

DataType check_type(int type);
void enqueue(const Given& given);
void enqueue(const GivenMessage& given);

}  // namespace catenary
