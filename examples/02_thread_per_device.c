/*
 * One process, a thread per device. Every thread makes its own rank and needs no group: the others
 * make theirs at the same time. The stream keeps ten
 * all-reduces in order; only its end is waited for.
 */
#include <pthread.h>

#include "check.h"

enum { kThreads = 4, kCount = 1 << 16 };

static ncclUniqueId shared_id;

static void* run_rank(void* argument) {
  const int rank = *(const int*)argument;
  CHECK_CUDA(cudaSetDevice(rank));
  cudaStream_t stream;
  CHECK_CUDA(cudaStreamCreate(&stream));
  ncclComm_t comm;
  CHECK_NCCL(ncclCommInitRank(&comm, kThreads, shared_id, rank));

  int ranks = 0, own_rank = -1, device = -1;
  CHECK_NCCL(ncclCommCount(comm, &ranks));
  CHECK_NCCL(ncclCommUserRank(comm, &own_rank));
  CHECK_NCCL(ncclCommCuDevice(comm, &device));
  if (ranks != kThreads || own_rank != rank || device != rank) {
    fprintf(stderr, "rank %d: is %d of %d on device %d\n", rank, own_rank, ranks, device);
    exit(1);
  }

  float* data = device_floats(kCount, (float)rank);
  for (int repetition = 0; repetition < 10; ++repetition) {
    CHECK_NCCL(ncclAllReduce(data, data, kCount, ncclFloat, ncclMax, comm, stream));
  }
  CHECK_CUDA(cudaStreamSynchronize(stream));
  check_values("maximum", data, kCount, kThreads - 1);

  CHECK_NCCL(ncclCommFinalize(comm));
  CHECK_NCCL(ncclCommDestroy(comm));
  CHECK_CUDA(cudaFree(data));
  CHECK_CUDA(cudaStreamDestroy(stream));
  return NULL;
}

int main(void) {
  pthread_t threads[kThreads];
  int ranks[kThreads];
  CHECK_NCCL(ncclGetUniqueId(&shared_id));
  for (int i = 0; i < kThreads; ++i) {
    ranks[i] = i;
    if (pthread_create(&threads[i], NULL, run_rank, &ranks[i]) != 0) return 1;
  }
  for (int i = 0; i < kThreads; ++i) {
    if (pthread_join(threads[i], NULL) != 0) return 1;
  }
  printf("%d threads agree\n", kThreads);
  return 0;
}
