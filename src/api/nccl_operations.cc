// The nccl* functions that enqueue: collectives, point-to-point, groups, reductions with a factor.
#include <cstddef>
#include <cstring>

#include "src/api/arguments.h"
#include "src/api/comm_handle.h"
#include "src/api/enqueue.h"
#include "src/api/export.h"
#include "src/api/guard.h"

namespace {

using namespace catenary;

ncclResult_t operation(const Given& given) {
  return guarded([&] { enqueue(given); });
}

ncclResult_t message(const GivenMessage& given) {
  return guarded([&] { enqueue(given); });
}

ncclResult_t end_group() {
  return guarded_result([] {
    return Group::of_this_thread().end() == Group::Outcome::kDone ? ncclSuccess : ncclInProgress;
  });
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
  return message({"Send", true, const_cast<void*>(sendbuff), count, datatype, peer, comm, stream});
}

CATENARY_NCCL(ncclResult_t, Recv,
              (void* recvbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
               cudaStream_t stream)) {
  return message({"Recv", false, recvbuff, count, datatype, peer, comm, stream});
}

CATENARY_NCCL(ncclResult_t, GroupStart, (void)) {
  return guarded([] { Group::of_this_thread().start(); });
}

CATENARY_NCCL(ncclResult_t, GroupEnd, (void)) { return end_group(); }

// The structure grows from version to version: the caller's may be longer or shorter than ours.
// With none it is an end like any other.
CATENARY_NCCL(ncclResult_t, GroupSimulateEnd, (ncclSimInfo_t * simInfo)) {
  if (simInfo == nullptr) return end_group();
  return guarded([&] {
    Group& group = Group::of_this_thread();
    constexpr ncclSimInfo_t kFresh = NCCL_SIM_INFO_INITIALIZER;
    constexpr std::size_t kEnd = offsetof(ncclSimInfo_t, estimatedTime) + sizeof(float);
    if (group.active() && (simInfo->size < kEnd || simInfo->magic != kFresh.magic)) {
      group.drop();
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
    check_pointer(op, "ncclRedOpCreatePreMulSum", "op");
    check_pointer(scalar, "ncclRedOpCreatePreMulSum", "scalar");
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
