// Ours: memory that peers can map (ncclMemAlloc), or malloc's with --memory private.
#include <stdio.h>
#include <stdlib.h>

#include "bench/peers/frame.h"
#include "bench/peers/meet.h"
#include "include/catenary/device.h"
#include "include/nccl.h"

static ncclComm_t comm;
static catStream_t stream;
static int my_rank;
static int rank_count;
static int private_memory;

static void check(ncclResult_t result) {
  if (result != ncclSuccess) fail("%s: %s", ncclGetErrorString(result), ncclGetLastError(comm));
}

static void check_device(catError_t result) {
  if (result != catSuccess) fail("%s", catGetErrorString(result));
}

static void create(const Plan* plan) {
  my_rank = plan->rank;
  rank_count = plan->ranks;
  private_memory = plan->private_memory;
  ncclUniqueId id;
  if (my_rank == 0) check(ncclGetUniqueId(&id));
  meet_share(&id, sizeof(id));
  check(ncclCommInitRank(&comm, rank_count, id, my_rank));
  check_device(catStreamCreateWithFlags(&stream, catStreamNonBlocking));
}

static void destroy(void) {
  check(ncclCommDestroy(comm));
  check_device(catStreamDestroy(stream));
}

static void* allocate(size_t bytes) {
  if (private_memory) return allocate_private(bytes);
  void* memory = NULL;
  check(ncclMemAlloc(&memory, bytes));
  return memory;
}

static int knows(Operation operation, Type type) {
  (void)operation;
  (void)type;
  return 1;
}

static void run(const Call* call) {
  static const ncclDataType_t kTypeIds[kTypes] = {ncclFloat, ncclHalf, ncclBfloat16};
  const ncclDataType_t type = kTypeIds[call->type];
  const void* const send = call->send;
  void* const recv = call->recv;
  const size_t count = call->count;
  switch (call->operation) {
    case kAllReduce: return check(ncclAllReduce(send, recv, count, type, ncclSum, comm, stream));
    case kReduceScatter:
      return check(ncclReduceScatter(send, recv, count, type, ncclSum, comm, stream));
    case kAllGather: return check(ncclAllGather(send, recv, count, type, comm, stream));
    case kAlltoall: return check(ncclAlltoAll(send, recv, count, type, comm, stream));
    case kBroadcast:
      return check(
          ncclBroadcast(send, my_rank == 0 ? (void*)send : recv, count, type, 0, comm, stream));
    case kReduce: return check(ncclReduce(send, recv, count, type, ncclSum, 0, comm, stream));
    case kSendRecv:
      check(ncclGroupStart());
      check(ncclSend(send, count, type, (my_rank + 1) % rank_count, comm, stream));
      check(ncclRecv(recv, count, type, (my_rank + rank_count - 1) % rank_count, comm, stream));
      return check(ncclGroupEnd());
    default: fail("an operation that nobody knows");
  }
}

static void wait_for_stream(void) { check_device(catStreamSynchronize(stream)); }

int main(int argc, char** argv) {
  static const Peer peer = {create, destroy, allocate, knows, run, wait_for_stream};
  return run_worker(argc, argv, &peer);
}
