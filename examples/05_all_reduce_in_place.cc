// All-reduce out of place, where the input stays, and in place, where send and receive buffers are
// the same; with the sum, the average, and a sum of inputs multiplied by a factor that each rank
// chooses.
#include <cstdio>
#include <vector>

#include "check.h"

namespace {

constexpr int kRanks = 3;
constexpr std::size_t kCount = 100'003;  // no multiple of anything
constexpr float kSum = 1 + 2 + 3;

struct Rank {
  ncclComm_t comm;
  cudaStream_t stream;
  float* input;
  float* output;
};

// One all-reduce on all ranks, then waits for it. ops[i] is rank i's name for the operation.
void all_reduce(const std::vector<Rank>& ranks, const std::vector<ncclRedOp_t>& ops,
                bool in_place) {
  CHECK_NCCL(ncclGroupStart());
  for (int i = 0; i < kRanks; ++i) {
    const Rank& rank = ranks[i];
    CHECK_NCCL(ncclAllReduce(in_place ? rank.output : rank.input, rank.output, kCount, ncclFloat,
                             ops[i], rank.comm, rank.stream));
  }
  CHECK_NCCL(ncclGroupEnd());
  for (int i = 0; i < kRanks; ++i) {
    CHECK_CUDA(cudaSetDevice(i));
    CHECK_CUDA(cudaStreamSynchronize(ranks[i].stream));
  }
}

void check_all(const std::vector<Rank>& ranks, const char* what, float expected) {
  for (const Rank& rank : ranks) check_values(what, rank.output, kCount, expected);
}

std::vector<Rank> make_ranks() {
  std::vector<ncclComm_t> comms(kRanks);
  CHECK_NCCL(ncclCommInitAll(comms.data(), kRanks, nullptr));
  std::vector<Rank> ranks(kRanks);
  for (int i = 0; i < kRanks; ++i) {
    CHECK_CUDA(cudaSetDevice(i));
    ranks[i].comm = comms[i];
    CHECK_CUDA(cudaStreamCreateWithFlags(&ranks[i].stream, cudaStreamNonBlocking));
    ranks[i].input = device_floats(kCount, static_cast<float>(i + 1));
    ranks[i].output = device_floats(kCount, 0);
  }
  return ranks;
}

// Rank i multiplies by 2^i before the sum.
void check_factors(const std::vector<Rank>& ranks) {
  std::vector<ncclRedOp_t> ops(kRanks);
  for (int i = 0; i < kRanks; ++i) {
    float factor = static_cast<float>(1 << i);
    CHECK_NCCL(ncclRedOpCreatePreMulSum(&ops[i], &factor, ncclFloat, ncclScalarHostImmediate,
                                        ranks[i].comm));
  }
  all_reduce(ranks, ops, false);
  check_all(ranks, "sum with factors", 1 * 1 + 2 * 2 + 3 * 4);
  for (int i = 0; i < kRanks; ++i) CHECK_NCCL(ncclRedOpDestroy(ops[i], ranks[i].comm));
}

}  // namespace

int main() {
  const std::vector<Rank> ranks = make_ranks();
  const std::vector<ncclRedOp_t> sum(kRanks, ncclSum);
  const std::vector<ncclRedOp_t> average(kRanks, ncclAvg);

  all_reduce(ranks, sum, false);
  check_all(ranks, "sum out of place", kSum);
  for (int i = 0; i < kRanks; ++i) {
    check_values("input", ranks[i].input, kCount, static_cast<float>(i + 1));
  }
  all_reduce(ranks, sum, true);
  check_all(ranks, "sum in place", kRanks * kSum);
  all_reduce(ranks, std::vector<ncclRedOp_t>(kRanks, ncclMin), true);
  check_all(ranks, "minimum in place", kRanks * kSum);
  all_reduce(ranks, average, true);
  // The average multiplies by 1/3, rounded, before it sums: near, and the same on all ranks.
  float at_rank[kRanks];
  for (int i = 0; i < kRanks; ++i) {
    CHECK_CUDA(cudaMemcpy(&at_rank[i], ranks[i].output, sizeof(float), cudaMemcpyDefault));
    const float error = at_rank[i] - kRanks * kSum;
    if (error > 1e-5f || error < -1e-5f || at_rank[i] != at_rank[0]) {
      std::fprintf(stderr, "average is %g at rank %d\n", static_cast<double>(at_rank[i]), i);
      return 1;
    }
  }
  check_factors(ranks);

  for (const Rank& rank : ranks) {
    CHECK_NCCL(ncclCommDestroy(rank.comm));
    CHECK_CUDA(cudaStreamDestroy(rank.stream));
    CHECK_CUDA(cudaFree(rank.input));
    CHECK_CUDA(cudaFree(rank.output));
  }
  std::printf("in place and out of place agree on %d ranks\n", kRanks);
  return 0;
}
