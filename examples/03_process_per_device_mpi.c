/*
 * A process per device, started by mpirun. MPI carries the unique id to all ranks and is not needed
 * for anything else; whatever a job has for passing 128 bytes around would do.
 *
 *     mpirun -n 4 --oversubscribe 03_process_per_device_mpi
 */
#include <mpi.h>

#include "check.h"

#define CHECK_MPI(call)                                          \
  do {                                                           \
    if ((call) != MPI_SUCCESS) {                                 \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #call); \
      exit(1);                                                   \
    }                                                            \
  } while (0)

enum { kCount = 1 << 20 };

/* Which of this machine's processes we are: the device to take. */
static int local_rank(int rank) {
  MPI_Comm machine;
  int local = 0;
  CHECK_MPI(
      MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &machine));
  CHECK_MPI(MPI_Comm_rank(machine, &local));
  CHECK_MPI(MPI_Comm_free(&machine));
  return local;
}

int main(int argc, char** argv) {
  int rank = 0, ranks = 0, devices = 0;
  CHECK_MPI(MPI_Init(&argc, &argv));
  CHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  CHECK_MPI(MPI_Comm_size(MPI_COMM_WORLD, &ranks));

  ncclUniqueId id;
  if (rank == 0) CHECK_NCCL(ncclGetUniqueId(&id));
  CHECK_MPI(MPI_Bcast(&id, sizeof(id), MPI_BYTE, 0, MPI_COMM_WORLD));

  CHECK_CUDA(cudaGetDeviceCount(&devices));
  CHECK_CUDA(cudaSetDevice(local_rank(rank) % devices));
  float* send = device_floats(kCount, (float)(rank + 1));
  float* receive = device_floats(kCount, 0);
  cudaStream_t stream;
  CHECK_CUDA(cudaStreamCreate(&stream));

  ncclComm_t comm;
  CHECK_NCCL(ncclCommInitRank(&comm, ranks, id, rank));
  CHECK_NCCL(ncclAllReduce(send, receive, kCount, ncclFloat, ncclSum, comm, stream));
  CHECK_CUDA(cudaStreamSynchronize(stream));
  check_values("sum", receive, kCount, (float)(ranks * (ranks + 1)) / 2);

  CHECK_NCCL(ncclCommDestroy(comm));
  CHECK_CUDA(cudaStreamDestroy(stream));
  CHECK_CUDA(cudaFree(send));
  CHECK_CUDA(cudaFree(receive));
  CHECK_MPI(MPI_Finalize());
  if (rank == 0) printf("%d processes agree\n", ranks);
  return 0;
}
