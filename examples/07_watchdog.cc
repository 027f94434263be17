// A watchdog as frameworks have one: every rank's stream is watched from another thread, which
// looks for errors and for progress, and aborts the communicator when there is none, so that
// whoever waits on the stream gets free. Here one rank leaves its partner alone in an all-reduce.
#include <chrono>
#include <cstdio>
#include <thread>

#include "check.h"

namespace {

constexpr std::size_t kCount = 1 << 20;
using Clock = std::chrono::steady_clock;

enum class Verdict { kFinished, kError, kTimeout };

// Until the stream is done, the communicator has an error, or the time is over.
Verdict watch(ncclComm_t comm, cudaStream_t stream, std::chrono::milliseconds patience) {
  const auto end = Clock::now() + patience;
  while (Clock::now() < end) {
    ncclResult_t state = ncclSuccess;
    CHECK_NCCL(ncclCommGetAsyncError(comm, &state));
    if (state != ncclSuccess && state != ncclInProgress) {
      std::printf("asynchronous error: %s (%s)\n", ncclGetErrorString(state),
                  ncclGetLastError(comm));
      return Verdict::kError;
    }
    if (cudaStreamQuery(stream) != cudaErrorNotReady) return Verdict::kFinished;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return Verdict::kTimeout;
}

struct Rank {
  ncclComm_t comm;
  cudaStream_t stream;
  float* data;
};

void all_reduce(Rank& rank) {
  CHECK_NCCL(
      ncclAllReduce(rank.data, rank.data, kCount, ncclFloat, ncclSum, rank.comm, rank.stream));
}

bool all_is_well(Rank (&ranks)[2]) {
  CHECK_NCCL(ncclGroupStart());
  for (Rank& rank : ranks) all_reduce(rank);
  CHECK_NCCL(ncclGroupEnd());
  for (Rank& rank : ranks) {
    if (watch(rank.comm, rank.stream, std::chrono::seconds(60)) != Verdict::kFinished) return false;
    check_values("sum", rank.data, kCount, 3);
  }
  return true;
}

// Rank 0 reduces, rank 1 does not. Someone waits on rank 0's stream while the watchdog watches.
bool a_partner_is_missing(Rank (&ranks)[2]) {
  all_reduce(ranks[0]);
  std::thread waits([&] { static_cast<void>(cudaStreamSynchronize(ranks[0].stream)); });
  const Verdict verdict = watch(ranks[0].comm, ranks[0].stream, std::chrono::milliseconds(300));
  CHECK_NCCL(ncclCommAbort(ranks[0].comm));
  waits.join();  // the abort has completed the stream, or this would never return
  return verdict == Verdict::kTimeout;
}

}  // namespace

int main() {
  Rank ranks[2];
  ncclComm_t comms[2];
  CHECK_NCCL(ncclCommInitAll(comms, 2, nullptr));
  for (int i = 0; i < 2; ++i) {
    CHECK_CUDA(cudaSetDevice(i));
    ranks[i].comm = comms[i];
    CHECK_CUDA(cudaStreamCreate(&ranks[i].stream));
    ranks[i].data = device_floats(kCount, static_cast<float>(i + 1));
  }
  if (!all_is_well(ranks)) return 1;
  std::printf("an all-reduce, watched\n");

  if (ncclAllReduce(nullptr, ranks[0].data, kCount, ncclFloat, ncclNumOps, ranks[0].comm,
                    ranks[0].stream) != ncclInvalidArgument) {
    std::fprintf(stderr, "a call without a buffer and with a wrong operation was taken\n");
    return 1;
  }
  std::printf("a wrong call, refused: %s\n", ncclGetLastError(ranks[0].comm));

  if (!a_partner_is_missing(ranks)) return 1;
  std::printf("a hang, noticed and ended\n");
  CHECK_NCCL(ncclCommAbort(ranks[1].comm));
  for (Rank& rank : ranks) {
    CHECK_CUDA(cudaStreamDestroy(rank.stream));
    CHECK_CUDA(cudaFree(rank.data));
  }
  return 0;
}
