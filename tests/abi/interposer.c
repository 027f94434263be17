/* A profiler in miniature: preloaded, it stands in for ncclAllReduce and passes on to
 * pncclAllReduce. */
#include <nccl.h>
#include <stdio.h>

ncclResult_t ncclAllReduce(const void* sendbuff, void* recvbuff, size_t count,
                           ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
                           cudaStream_t stream) {
  fprintf(stderr, "interposed an all-reduce of %zu\n", count);
  return pncclAllReduce(sendbuff, recvbuff, count, datatype, op, comm, stream);
}
