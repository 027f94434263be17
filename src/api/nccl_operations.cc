// The nccl* functions that enqueue: collectives, point-to-point, groups, reductions with a factor.
#include <cstddef>
#include <cstring>

#include "src/api/comm_handle.h"
#include "src/api/export.h"
#include "src/api/guard.h"
#include "src/device/device.h"

namespace {

using namespace catenary;

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
};

DataType check_type(int type) {
  if (type < 0 || type >= ncclNumTypes)
    throw_error(ErrorCode::kInvalidArgument, "invalid type %d", type);
  return static_cast<DataType>(type);
}

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

// Which buffers this rank's part of the operation looks at.
void check_buffers(const Given& given, int rank) {
  const bool at_root = rank == given.root;
  const bool sends =
      given.kind != Collective::kRecv &&
      (at_root || (given.kind != Collective::kBroadcast && given.kind != Collective::kScatter));
  const bool receives =
      given.kind != Collective::kSend &&
      (at_root || (given.kind != Collective::kReduce && given.kind != Collective::kGather));
  if (given.count == 0) return;
  if (given.kind == Collective::kRecv ? given.receive == nullptr
                                      : receives && given.receive == nullptr) {
    throw_error(ErrorCode::kInvalidArgument, "%s : recvbuff argument is NULL", given.function);
  }
  if (given.kind == Collective::kSend ? given.send == nullptr : sends && given.send == nullptr) {
    throw_error(ErrorCode::kInvalidArgument, "%s : sendbuff argument is NULL", given.function);
  }
}

// Every rank's parts would overwrite others that are yet to be sent.
void check_in_place(const Given& given, int nranks) {
  if (given.kind != Collective::kAllToAll || given.count == 0 || nranks == 1) return;
  if (given.send == given.receive) {
    throw_error(ErrorCode::kInvalidArgument, "%s : cannot run in place", given.function);
  }
}

void check_count(const Given& given, int nranks) {
  const std::size_t parts = holds_part_per_rank(given.kind) ? static_cast<std::size_t>(nranks) : 1;
  if (given.count > (SIZE_MAX >> 1) / element_bytes(static_cast<DataType>(given.type)) / parts) {
    throw_error(ErrorCode::kInvalidArgument, "%s : count %zu is more than memory can hold",
                given.function, given.count);
  }
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
  check_in_place(given, call->nranks());
  check_count(given, call->nranks());

  OperationRequest request;
  request.kind = given.kind;
  request.input = given.send;
  request.output = given.receive;
  request.count = given.count;
  request.type = type;
  if (reduces(given.kind)) request.reduction = call->reductions().resolve(given.op, type);
  request.root = given.root;
  request.stream = check_stream(given, call->device());

  // By NCCL's rule not even a barrier.
  if (given.count == 0 && !is_point_to_point(given.kind)) return;
  if (Group& group = Group::of_this_thread(); group.active()) {
    group.add(call.shared(), request);
  } else {
    call->check({&request, 1});
    call->submit({&request, 1});
  }
}

ncclResult_t operation(const Given& given) {
  return guarded([&] { enqueue(given); });
}

}  // namespace

CATENARY_NCCL(ncclResult_t, AllReduce,
              (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)) {
  return operation({"AllReduce", Collective::kAllReduce, sendbuff, recvbuff, count, datatype, op, 0,
                    comm, stream});
}

CATENARY_NCCL(ncclResult_t, Broadcast,
              (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
               int root, ncclComm_t comm, cudaStream_t stream)) {
  return operation({"Broadcast", Collective::kBroadcast, sendbuff, recvbuff, count, datatype, -1,
                    root, comm, stream});
}

CATENARY_NCCL(ncclResult_t, Bcast,
              (void* buff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
               cudaStream_t stream)) {
  return operation(
      {"Bcast", Collective::kBroadcast, buff, buff, count, datatype, -1, root, comm, stream});
}

CATENARY_NCCL(ncclResult_t, Reduce,
              (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
               ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream)) {
  return operation(
      {"Reduce", Collective::kReduce, sendbuff, recvbuff, count, datatype, op, root, comm, stream});
}

CATENARY_NCCL(ncclResult_t, ReduceScatter,
              (const void* sendbuff, void* recvbuff, size_t recvcount, ncclDataType_t datatype,
               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)) {
  return operation({"ReduceScatter", Collective::kReduceScatter, sendbuff, recvbuff, recvcount,
                    datatype, op, 0, comm, stream});
}

CATENARY_NCCL(ncclResult_t, AllGather,
              (const void* sendbuff, void* recvbuff, size_t sendcount, ncclDataType_t datatype,
               ncclComm_t comm, cudaStream_t stream)) {
  return operation({"AllGather", Collective::kAllGather, sendbuff, recvbuff, sendcount, datatype,
                    -1, 0, comm, stream});
}

CATENARY_NCCL(ncclResult_t, AlltoAll,
              (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
               ncclComm_t comm, cudaStream_t stream)) {
  return operation({"AlltoAll", Collective::kAllToAll, sendbuff, recvbuff, count, datatype, -1, 0,
                    comm, stream});
}

CATENARY_NCCL(ncclResult_t, Gather,
              (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
               int root, ncclComm_t comm, cudaStream_t stream)) {
  return operation(
      {"Gather", Collective::kGather, sendbuff, recvbuff, count, datatype, -1, root, comm, stream});
}

CATENARY_NCCL(ncclResult_t, Scatter,
              (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
               int root, ncclComm_t comm, cudaStream_t stream)) {
  return operation({"Scatter", Collective::kScatter, sendbuff, recvbuff, count, datatype, -1, root,
                    comm, stream});
}

CATENARY_NCCL(ncclResult_t, Send,
              (const void* sendbuff, size_t count, ncclDataType_t datatype, int peer,
               ncclComm_t comm, cudaStream_t stream)) {
  return operation(
      {"Send", Collective::kSend, sendbuff, nullptr, count, datatype, -1, peer, comm, stream});
}

CATENARY_NCCL(ncclResult_t, Recv,
              (void* recvbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
               cudaStream_t stream)) {
  return operation(
      {"Recv", Collective::kRecv, nullptr, recvbuff, count, datatype, -1, peer, comm, stream});
}

CATENARY_NCCL(ncclResult_t, GroupStart, (void)) {
  return guarded([] { Group::of_this_thread().start(); });
}

CATENARY_NCCL(ncclResult_t, GroupEnd, (void)) {
  return guarded_result([] {
    return Group::of_this_thread().end() == Group::Outcome::kDone ? ncclSuccess : ncclInProgress;
  });
}

// The structure grows from version to version: the caller's may be longer or shorter than ours.
CATENARY_NCCL(ncclResult_t, GroupSimulateEnd, (ncclSimInfo_t * simInfo)) {
  return guarded([&] {
    Group& group = Group::of_this_thread();
    constexpr ncclSimInfo_t kFresh = NCCL_SIM_INFO_INITIALIZER;
    constexpr std::size_t kEnd = offsetof(ncclSimInfo_t, estimatedTime) + sizeof(float);
    if (simInfo == nullptr || simInfo->size < kEnd || simInfo->magic != kFresh.magic) {
      if (group.active()) group.drop();
      throw_error(ErrorCode::kInvalidArgument,
                  "ncclSimInfo_t argument not initialized via NCCL_SIM_INFO_INITIALIZER");
    }
    if (const std::optional<double> ns = group.simulate_end_ns()) {
      simInfo->estimatedTime = static_cast<float>(*ns / 1000);
    }
  });
}

CATENARY_NCCL(ncclResult_t, RedOpCreatePreMulSum,
              (ncclRedOp_t * op, void* scalar, ncclDataType_t datatype,
               ncclScalarResidence_t residence, ncclComm_t comm)) {
  return guarded([&] {
    const CommCall call(comm, "ncclRedOpCreatePreMulSum");
    if (op == nullptr)
      throw_error(ErrorCode::kInvalidArgument, "ncclRedOpCreatePreMulSum : op argument is NULL");
    if (scalar == nullptr)
      throw_error(ErrorCode::kInvalidArgument,
                  "ncclRedOpCreatePreMulSum : scalar argument is NULL");
    const DataType type = check_type(datatype);
    Scaling scaling;
    if (residence == ncclScalarHostImmediate) {
      scaling.from = Scaling::From::kValue;
      std::memcpy(scaling.value.bits, scalar, element_bytes(type));
    } else if (residence == ncclScalarDevice) {
      scaling.from = Scaling::From::kMemory;
      scaling.memory = scalar;
    } else {
      throw_error(ErrorCode::kInvalidArgument, "ncclRedOpCreatePreMulSum : invalid residence %d",
                  residence);
    }
    *op = static_cast<ncclRedOp_t>(call->reductions().create_pre_mul_sum(type, scaling));
  });
}

CATENARY_NCCL(ncclResult_t, RedOpDestroy, (ncclRedOp_t op, ncclComm_t comm)) {
  return guarded([&] { CommCall(comm, "ncclRedOpDestroy")->reductions().destroy(op); });
}
