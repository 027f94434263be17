#include "src/api/enqueue.h"

#include <algorithm>

#include "src/api/comm_handle.h"
#include "src/base/error.h"
#include "src/comm/group.h"
#include "src/device/device.h"

namespace catenary {
namespace {

Stream* check_stream(const Given& given, Device& device) {
  Stream* stream = stream_from_handle(given.stream, device);
  if (stream == nullptr) {
    throw_error(ErrorCode::kInvalidArgument, "%s : stream %p is not a stream", given.function,
                static_cast<void*>(given.stream));
  }
  if (&stream->device() != &device) {
    throw_error(ErrorCode::kInvalidArgument,
                "%s : the stream belongs to device %d, the communicator to device %d",
                given.function, stream->device().ordinal(), device.ordinal());
  }
  return stream;
}

bool has_elements(const std::vector<Range>& parts) {
  return std::ranges::any_of(parts, [](const Range& part) { return part.count > 0; });
}

bool looks_at_input(const Given& given, int rank) {
  switch (given.kind) {
    case Collective::kRecv: return false;
    case Collective::kBroadcast:
    case Collective::kScatter: return given.count > 0 && rank == given.root;
    default: return given.parts != nullptr ? has_elements(given.parts->input) : given.count > 0;
  }
}

bool looks_at_output(const Given& given, int rank) {
  switch (given.kind) {
    case Collective::kSend: return false;
    case Collective::kReduce:
    case Collective::kGather: return given.count > 0 && rank == given.root;
    default: return given.parts != nullptr ? has_elements(given.parts->output) : given.count > 0;
  }
}

void check_buffers(const Given& given, int rank) {
  if (given.receive == nullptr && looks_at_output(given, rank)) {
    throw_error(ErrorCode::kInvalidArgument, "%s : recvbuff argument is NULL", given.function);
  }
  if (given.send == nullptr && looks_at_input(given, rank)) {
    throw_error(ErrorCode::kInvalidArgument, "%s : sendbuff argument is NULL", given.function);
  }
}

// A part that comes from a rank may only take the place of the one that goes to it.
void check_in_place(const Given& given) {
  if (given.kind != Collective::kAllToAllV || given.send != given.receive) return;
  if (given.parts->input == given.parts->output) return;
  throw_error(ErrorCode::kInvalidArgument,
              "%s : in place, what goes to a rank must have the count and displacement of what "
              "comes from it",
              given.function);
}

void check_count(const Given& given, int nranks) {
  const std::size_t parts = holds_part_per_rank(given.kind) ? static_cast<std::size_t>(nranks) : 1;
  // Too few to need the divisions.
  if (given.count < std::size_t{1} << 32 && given.parts == nullptr) return;
  const std::size_t most = (SIZE_MAX >> 1) / element_bytes(static_cast<DataType>(given.type));
  if (given.count > most / parts) {
    throw_error(ErrorCode::kInvalidArgument, "%s : count %zu is more than memory can hold",
                given.function, given.count);
  }
  if (given.parts == nullptr) return;
  for (const std::vector<Range>* side : {&given.parts->input, &given.parts->output}) {
    for (const Range& part : *side) {
      if (part.count <= most && part.offset <= most - part.count) continue;
      throw_error(ErrorCode::kInvalidArgument,
                  "%s : a part of %zu elements at %zu is beyond what memory can hold",
                  given.function, part.count, part.offset);
    }
  }
}

// Whether there is nothing to do, for all ranks alike: by NCCL's rule not even a barrier.
bool is_nothing(const Given& given) {
  switch (given.kind) {
    case Collective::kSend:
    case Collective::kRecv:
    case Collective::kAllToAllV:  // others may have elements for others
    case Collective::kBarrier: return false;
    default: return given.count == 0;
  }
}

}  // namespace

DataType check_type(int type) {
  if (type < 0 || type >= ncclNumTypes)
    throw_error(ErrorCode::kInvalidArgument, "invalid type %d", type);
  return static_cast<DataType>(type);
}

void enqueue(const Given& given) {
  const CommCall call(given.comm, given.function);
  call->throw_if_failed();
  const DataType type = check_type(given.type);
  if (has_root(given.kind) && (given.root < 0 || given.root >= call->nranks())) {
    throw_error(ErrorCode::kInvalidArgument,
                "%s : invalid root %d (root should be in the 0..%d range)", given.function,
                given.root, call->nranks() - 1);
  }
  check_buffers(given, call->rank());
  check_in_place(given);
  check_count(given, call->nranks());

  OperationRequest request;
  request.kind = given.kind;
  request.input = given.send;
  request.output = given.receive;
  request.count = given.count;
  request.parts = given.parts;
  request.type = type;
  if (reduces(given.kind)) request.reduction = call->reductions().resolve(given.op, type);
  request.root = given.root;
  request.stream = check_stream(given, call->device());

  if (is_nothing(given)) return;
  if (Group::any_open()) {
    Group::of_this_thread().add(call.shared(), request);
  } else {
    if (is_point_to_point(given.kind)) call->check({&request, 1});
    call->submit({&request, 1});
  }
}

}  // namespace catenary
