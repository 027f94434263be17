// Any MPI: compiled with that MPI's own mpicc, started by its own mpirun. Sums of 16 bits exist
// where the MPI has a type for them.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/peers/frame.h"
#include "bench/peers/meet.h"

static MPI_Comm comm;
static int my_rank;
static int rank_count;
static MPI_Datatype types[kTypes];

static void check(int result) {
  if (result != MPI_SUCCESS) fail("MPI error %d", result);
}

static void create(const Plan* plan) {
  check(MPI_Init(NULL, NULL));
  check(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
  MPI_Comm_rank(comm, &my_rank);
  MPI_Comm_size(comm, &rank_count);
  if (my_rank != plan->rank || rank_count != plan->ranks) {
    fail("MPI makes this rank %d of %d", my_rank, rank_count);
  }
  types[kFloat] = MPI_FLOAT;
  types[kHalf] = MPI_DATATYPE_NULL;
  types[kBfloat16] = MPI_DATATYPE_NULL;
#if defined(I_MPI_VERSION)
  types[kHalf] = MPIX_C_FLOAT16;
  types[kBfloat16] = MPIX_C_BF16;
#elif defined(MPIX_SHORT_FLOAT)  // MPICH 4.0 has a name too, but fails an assertion when it adds
  types[kHalf] = MPIX_SHORT_FLOAT;
#endif
}

static void destroy(void) {
  MPI_Comm_free(&comm);
  MPI_Finalize();
}

static int knows(Operation operation, Type type) {
  (void)operation;
  return types[type] != MPI_DATATYPE_NULL;
}

static void run(const Call* call) {
  const MPI_Datatype type = types[call->type];
  const void* const send = call->send;
  void* const recv = call->recv;
  const int count = (int)call->count;
  switch (call->operation) {
    case kAllReduce: return check(MPI_Allreduce(send, recv, count, type, MPI_SUM, comm));
    case kReduceScatter:
      return check(MPI_Reduce_scatter_block(send, recv, count, type, MPI_SUM, comm));
    case kAllGather: return check(MPI_Allgather(send, count, type, recv, count, type, comm));
    case kAlltoall: return check(MPI_Alltoall(send, count, type, recv, count, type, comm));
    case kBroadcast:
      return check(MPI_Bcast(my_rank == 0 ? (void*)send : recv, count, type, 0, comm));
    case kReduce: return check(MPI_Reduce(send, recv, count, type, MPI_SUM, 0, comm));
    case kSendRecv:
      return check(MPI_Sendrecv(send, count, type, (my_rank + 1) % rank_count, 0, recv, count, type,
                                (my_rank + rank_count - 1) % rank_count, 0, comm,
                                MPI_STATUS_IGNORE));
    default: fail("an operation that nobody knows");
  }
}

int main(int argc, char** argv) {
  static const Peer peer = {create, destroy, allocate_private, knows, run, NULL};
  return run_worker(argc, argv, &peer);
}
