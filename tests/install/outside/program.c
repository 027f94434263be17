/* An outside program: two ranks in one process sum a number. Built by both ways of finding us. */
#include <cuda_runtime.h>
#include <nccl.h>
#include <stdio.h>
#include <string.h>

/* What the package says of NCCL's version is what the header says. */
static int finds_the_version(void) {
  char version[32];
  snprintf(version, sizeof version, "%d.%d.%d", NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH);
  return strcmp(version, FOUND_NCCL_VERSION) == 0;
}

int main(void) {
  ncclComm_t ranks[2];
  float data[2] = {20, 22};
  int version = 0;
  if (!finds_the_version()) return 1;
  if (ncclGetVersion(&version) != ncclSuccess || version != NCCL_VERSION_CODE) return 1;
  if (ncclCommInitAll(ranks, 2, NULL) != ncclSuccess) return 1;
  if (ncclGroupStart() != ncclSuccess) return 1;
  for (int i = 0; i < 2; ++i) {
    if (ncclAllReduce(&data[i], &data[i], 1, ncclFloat, ncclSum, ranks[i], NULL) != ncclSuccess)
      return 1;
  }
  if (ncclGroupEnd() != ncclSuccess) return 1;
  for (int i = 0; i < 2; ++i) {
    if (cudaSetDevice(i) != cudaSuccess || cudaStreamSynchronize(NULL) != cudaSuccess) return 1;
    if (ncclCommDestroy(ranks[i]) != ncclSuccess) return 1;
  }
  printf("%g %g\n", (double)data[0], (double)data[1]);
  return data[0] != 42 || data[1] != 42;
}
