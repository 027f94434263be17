// A token goes once around a ring of threads, each adding one; then all ranks shift data to their
// neighbor at the same time, which takes a group: sends and receives within one progress together.
#include <cstdio>
#include <thread>
#include <vector>

#include "check.h"

namespace {

constexpr int kRanks = 4;
constexpr std::size_t kCount = 1 << 18;

void pass_token(int rank, ncclComm_t comm, cudaStream_t stream) {
  const int next = (rank + 1) % kRanks;
  const int previous = (rank + kRanks - 1) % kRanks;
  float* token = device_floats(1, 0);
  float value = 0;
  if (rank != 0) {
    CHECK_NCCL(ncclRecv(token, 1, ncclFloat, previous, comm, stream));
    CHECK_CUDA(cudaMemcpyAsync(&value, token, sizeof(value), cudaMemcpyDeviceToHost, stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));
  }
  value += 1;
  CHECK_CUDA(cudaMemcpyAsync(token, &value, sizeof(value), cudaMemcpyHostToDevice, stream));
  CHECK_NCCL(ncclSend(token, 1, ncclFloat, next, comm, stream));
  if (rank == 0) CHECK_NCCL(ncclRecv(token, 1, ncclFloat, previous, comm, stream));
  CHECK_CUDA(cudaStreamSynchronize(stream));
  if (rank == 0) check_values("token", token, 1, kRanks);
  CHECK_CUDA(cudaFree(token));
}

void shift(int rank, ncclComm_t comm, cudaStream_t stream) {
  const int next = (rank + 1) % kRanks;
  const int previous = (rank + kRanks - 1) % kRanks;
  float* outgoing = device_floats(kCount, static_cast<float>(rank));
  float* incoming = device_floats(kCount, -1);
  CHECK_NCCL(ncclGroupStart());
  CHECK_NCCL(ncclSend(outgoing, kCount, ncclFloat, next, comm, stream));
  CHECK_NCCL(ncclRecv(incoming, kCount, ncclFloat, previous, comm, stream));
  CHECK_NCCL(ncclGroupEnd());
  CHECK_CUDA(cudaStreamSynchronize(stream));
  check_values("shifted", incoming, kCount, static_cast<float>(previous));
  CHECK_CUDA(cudaFree(outgoing));
  CHECK_CUDA(cudaFree(incoming));
}

void run_rank(ncclUniqueId id, int rank) {
  CHECK_CUDA(cudaSetDevice(rank));
  cudaStream_t stream;
  CHECK_CUDA(cudaStreamCreate(&stream));
  ncclComm_t comm;
  CHECK_NCCL(ncclCommInitRank(&comm, kRanks, id, rank));
  pass_token(rank, comm, stream);
  shift(rank, comm, stream);
  CHECK_NCCL(ncclCommDestroy(comm));
  CHECK_CUDA(cudaStreamDestroy(stream));
}

}  // namespace

int main() {
  ncclUniqueId id;
  CHECK_NCCL(ncclGetUniqueId(&id));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; ++rank) threads.emplace_back(run_rank, id, rank);
  for (std::thread& thread : threads) thread.join();
  std::printf("a token and a shift around %d ranks\n", kRanks);
  return 0;
}
