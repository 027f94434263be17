/*
 * Non-blocking communicators: no call waits, each may answer ncclInProgress, and the program asks
 * until the answer is something else; meanwhile it could do other work, or decide that it has
 * waited enough. The second communicator here waits for a rank that never comes, and is aborted.
 */
#include <time.h>

#include "check.h"

enum { kDevices = 2, kCount = 4096 };

static double seconds_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void pause_a_little(void) {
  const struct timespec pause = {0, 200 * 1000};
  nanosleep(&pause, NULL);
}

/* Asks until the communicator is done, or `seconds` have passed: then ncclInProgress. */
static ncclResult_t poll_state(ncclComm_t comm, double seconds) {
  const double end = seconds_now() + seconds;
  ncclResult_t state = ncclInProgress;
  for (;;) {
    CHECK_NCCL(ncclCommGetAsyncError(comm, &state));
    if (state != ncclInProgress || seconds_now() > end) return state;
    pause_a_little();
  }
}

/* The answer of a call that may say "in progress", which is no error. */
static void accept_progress(ncclResult_t result) {
  if (result != ncclInProgress) CHECK_NCCL(result);
}

static void wait_all(const ncclComm_t* comms) {
  for (int i = 0; i < kDevices; ++i) CHECK_NCCL(poll_state(comms[i], 60));
}

static void all_reduce(const ncclComm_t* comms) {
  float* data[kDevices];
  cudaStream_t streams[kDevices];
  for (int i = 0; i < kDevices; ++i) {
    CHECK_CUDA(cudaSetDevice(i));
    CHECK_CUDA(cudaStreamCreate(&streams[i]));
    data[i] = device_floats(kCount, (float)(i + 1));
  }
  CHECK_NCCL(ncclGroupStart());
  for (int i = 0; i < kDevices; ++i) {
    accept_progress(
        ncclAllReduce(data[i], data[i], kCount, ncclFloat, ncclSum, comms[i], streams[i]));
  }
  accept_progress(ncclGroupEnd());
  wait_all(comms);
  for (int i = 0; i < kDevices; ++i) {
    CHECK_CUDA(cudaSetDevice(i));
    cudaError_t state;
    while ((state = cudaStreamQuery(streams[i])) == cudaErrorNotReady) pause_a_little();
    CHECK_CUDA(state);
    check_values("sum", data[i], kCount, kDevices * (kDevices + 1) / 2.0f);
    CHECK_CUDA(cudaStreamDestroy(streams[i]));
    CHECK_CUDA(cudaFree(data[i]));
  }
}

static void several_ranks(void) {
  ncclComm_t comms[kDevices];
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclUniqueId id;
  CHECK_NCCL(ncclGetUniqueId(&id));
  CHECK_NCCL(ncclGroupStart());
  for (int i = 0; i < kDevices; ++i) {
    CHECK_CUDA(cudaSetDevice(i));
    accept_progress(ncclCommInitRankConfig(&comms[i], kDevices, id, i, &config));
  }
  accept_progress(ncclGroupEnd());
  wait_all(comms);

  all_reduce(comms);

  for (int i = 0; i < kDevices; ++i) accept_progress(ncclCommFinalize(comms[i]));
  wait_all(comms);
  for (int i = 0; i < kDevices; ++i) CHECK_NCCL(ncclCommDestroy(comms[i]));
  printf("%d ranks without waiting\n", kDevices);
}

static void a_rank_that_never_comes(void) {
  ncclComm_t comm;
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclUniqueId id;
  CHECK_NCCL(ncclGetUniqueId(&id));
  CHECK_CUDA(cudaSetDevice(0));
  accept_progress(ncclCommInitRankConfig(&comm, 2, id, 0, &config));
  if (poll_state(comm, 0.2) != ncclInProgress) {
    fprintf(stderr, "a communicator of two ranks was made by one\n");
    exit(1);
  }
  const double begin = seconds_now();
  CHECK_NCCL(ncclCommAbort(comm));
  if (seconds_now() - begin > 5) {
    fprintf(stderr, "abort took %g s\n", seconds_now() - begin);
    exit(1);
  }
  printf("gave up on a rank that never came\n");
}

int main(void) {
  several_ranks();
  a_rank_that_never_comes();
  return 0;
}
