/*
 * One process, one thread, several devices: a rank on each. The calls for all ranks stand in a
 * group, since one thread cannot wait in the first call for what it has yet to say in the second.
 *
 * The communicators are made twice: by ncclCommInitAll, and by what it stands for.
 */
#include "check.h"

enum { kDevices = 4, kCount = 1 << 20 };

static void all_reduce(ncclComm_t* comms, const int* devices, const char* how) {
  float* send[kDevices];
  float* receive[kDevices];
  cudaStream_t streams[kDevices];
  for (int i = 0; i < kDevices; ++i) {
    CHECK_CUDA(cudaSetDevice(devices[i]));
    send[i] = device_floats(kCount, (float)(i + 1));
    receive[i] = device_floats(kCount, 0);
    CHECK_CUDA(cudaStreamCreate(&streams[i]));
  }

  CHECK_NCCL(ncclGroupStart());
  for (int i = 0; i < kDevices; ++i) {
    CHECK_NCCL(
        ncclAllReduce(send[i], receive[i], kCount, ncclFloat, ncclSum, comms[i], streams[i]));
  }
  CHECK_NCCL(ncclGroupEnd());

  for (int i = 0; i < kDevices; ++i) {
    CHECK_CUDA(cudaSetDevice(devices[i]));
    CHECK_CUDA(cudaStreamSynchronize(streams[i]));
    check_values(how, receive[i], kCount, kDevices * (kDevices + 1) / 2.0f);
    CHECK_CUDA(cudaStreamDestroy(streams[i]));
    CHECK_CUDA(cudaFree(send[i]));
    CHECK_CUDA(cudaFree(receive[i]));
  }
  for (int i = 0; i < kDevices; ++i) CHECK_NCCL(ncclCommDestroy(comms[i]));
  printf("%s: %d ranks agree\n", how, kDevices);
}

int main(void) {
  const int devices[kDevices] = {0, 1, 2, 3};
  ncclComm_t comms[kDevices];

  CHECK_NCCL(ncclCommInitAll(comms, kDevices, devices));
  all_reduce(comms, devices, "ncclCommInitAll");

  ncclUniqueId id;
  CHECK_NCCL(ncclGetUniqueId(&id));
  CHECK_NCCL(ncclGroupStart());
  for (int i = 0; i < kDevices; ++i) {
    CHECK_CUDA(cudaSetDevice(devices[i]));
    CHECK_NCCL(ncclCommInitRank(&comms[i], kDevices, id, i));
  }
  CHECK_NCCL(ncclGroupEnd());
  all_reduce(comms, devices, "grouped ncclCommInitRank");
  return 0;
}
