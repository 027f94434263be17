#include "src/api/enqueue.h"

#include <algorithm>

#include "src/api/arguments.h"
#include "src/api/comm_handle.h"
#include "src/base/error.h"
#include "src/comm/group.h"
#include "src/comm/overlap.h"
#include "src/device/device.h"

namespace catenary {
namespace {

template <typename AnyGiven>
Stream* check_stream(const AnyGiven& given, Device& device) {
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
    case Collective::kBroadcast:
    case Collective::kScatter: return given.count > 0 && rank == given.root;
    default: return given.parts != nullptr ? has_elements(given.parts->input) : given.count > 0;
  }
}

bool looks_at_output(const Given& given, int rank) {
  switch (given.kind) {
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

// Of whole buffers NCCL allows only the same. Where they hold a part of each rank, what lies in the
// way is copied.
[[gnu::noinline]] void check_neighbours(const Given& given, const OperationRequest& request,
                                        const Communicator& comm) {
  if (holds_part_per_rank(given.kind) || given.parts != nullptr) return;
  if (overlap_of(request, comm.rank(), comm.nranks()) != Overlap::kAskew) return;
  throw_error(ErrorCode::kInvalidArgument,
              "%s : sendbuff and recvbuff overlap; they must be the same, or apart by all of their "
              "%zu bytes",
              given.function, given.count * element_bytes(request.type));
}

// Mostly they are the same, or far from each other whatever the type.
void check_apart(const Given& given, const OperationRequest& request, const Communicator& comm) {
  constexpr std::size_t kLongestElement = element_bytes(DataType::kFloat64);
  const std::size_t apart = bytes_apart(given.send, given.receive);
  if (apart == 0 || apart / kLongestElement >= given.count) return;
  check_neighbours(given, request, comm);
}

// Too few to need the divisions.
bool is_small(std::size_t count) { return count < std::size_t{1} << 32; }

std::size_t most_elements(DataType type) { return (SIZE_MAX >> 1) / element_bytes(type); }

[[noreturn]] void refuse_count(const char* function, std::size_t count) {
  throw_error(ErrorCode::kInvalidArgument, "%s : count %zu is more than memory can hold", function,
              count);
}

void check_count(const Given& given, int nranks) {
  const std::size_t parts = holds_part_per_rank(given.kind) ? static_cast<std::size_t>(nranks) : 1;
  if (is_small(given.count) && given.parts == nullptr) return;
  const std::size_t most = most_elements(static_cast<DataType>(given.type));
  if (given.count > most / parts) refuse_count(given.function, given.count);
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

// But for the stream.
[[gnu::always_inline]] inline MessageRequest checked(const GivenMessage& given,
                                                     Communicator& communicator) {
  communicator.throw_if_failed();
  const DataType type = check_type(given.type);
  check_rank(given.peer, communicator.nranks(), given.function, "peer");
  if (given.buffer == nullptr && given.count > 0) {
    throw_error(ErrorCode::kInvalidArgument, "%s : %s argument is NULL", given.function,
                given.sends ? "sendbuff" : "recvbuff");
  }
  if (!is_small(given.count) && given.count > most_elements(type))
    refuse_count(given.function, given.count);
  return {.buffer = given.buffer,
          .count = given.count,
          .peer = given.peer,
          .type = type,
          .sends = given.sends};
}

// Whether there is nothing to do, for all ranks alike: by NCCL's rule not even a barrier.
bool is_nothing(const Given& given) {
  switch (given.kind) {
    case Collective::kAllToAllV:  // others may have elements for others
    case Collective::kBarrier: return false;
    default: return given.count == 0;
  }
}

[[gnu::noinline]] void enqueue_other(const GivenMessage& given, Group* group) {
  const CommCall call(given.comm, given.function);
  MessageRequest message = checked(given, *call.shared());
  message.stream = check_stream(given, call->device());
  if (group != nullptr) {
    const bool may_be_last = call->options().blocking;
    group->add(call.shared(), message,
               may_be_last ? Group::Call{given.comm, given.stream} : Group::Call{});
  } else {
    const Requests requests{.operations = {}, .messages = {&message, 1}};
    call->check(requests);
    call->submit(requests);
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
  if (has_root(given.kind)) check_rank(given.root, call->nranks(), given.function, "root");
  check_buffers(given, call->rank());
  check_in_place(given);
  check_count(given, call->nranks());

  // All members at once: else the compiler clears them first, which takes longer than to set them.
  const OperationRequest request{.kind = given.kind,
                                 .input = given.send,
                                 .output = given.receive,
                                 .count = given.count,
                                 .parts = given.parts,
                                 .type = type,
                                 .reduction = reduces(given.kind)
                                                  ? call->reductions().resolve(given.op, type)
                                                  : ResolvedReduction{},
                                 .root = given.root,
                                 .mark = call->mark(),
                                 .stream = check_stream(given, call->device())};
  check_apart(given, request, *call.shared());
  if (is_nothing(given)) return;
  if (Group* group = Group::open()) {
    group->add(call.shared(), request);
  } else {
    call->submit({.operations = {&request, 1}, .messages = {}});
  }
}

// Lean, because groups hold many of them: behind another one of the communicator that joined last,
// which the group holds, nobody has to be told that a call is inside of that; and the stream is
// known.
[[gnu::flatten]] void enqueue(const GivenMessage& given) {
  Group* const group = Group::open();
  if (group != nullptr) {
    Communicator* const last = group->last_called({given.comm, given.stream});
    if (last != nullptr && given.comm->in_prime())
      return group->add_like_last(checked(given, *last));
  }
  enqueue_other(given, group);
}

}  // namespace catenary
