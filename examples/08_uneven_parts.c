/*
 * Collectives that NCCL has not: every rank sends parts of different length to every other one, all
 * gather parts of different length, and a barrier separates the two. One thread drives all ranks,
 * so that the calls of each collective go into one group.
 */
#include <catenary/collectives.h>

#include "check.h"

enum { kRanks = 4, kMost = kRanks * kRanks };

/* Rank `from` sends so many elements to rank `to`: its own rank's worth, and none to itself. */
static size_t count_between(int from, int to) { return from == to ? 0 : (size_t)from; }

static void all_to_all(ncclComm_t* comms, cudaStream_t* streams) {
  float* outgoing[kRanks];
  float* incoming[kRanks];
  for (int rank = 0; rank < kRanks; ++rank) {
    CHECK_CUDA(cudaSetDevice(rank));
    outgoing[rank] = device_floats(kMost, (float)rank);
    incoming[rank] = device_floats(kMost, -1);
  }
  CHECK_NCCL(ncclGroupStart());
  for (int rank = 0; rank < kRanks; ++rank) {
    size_t sends[kRanks];
    size_t receives[kRanks];
    size_t places[kRanks]; /* a slot of kRanks elements for each peer */
    for (int peer = 0; peer < kRanks; ++peer) {
      sends[peer] = count_between(rank, peer);
      receives[peer] = count_between(peer, rank);
      places[peer] = (size_t)(peer * kRanks);
    }
    CHECK_NCCL(catAlltoAllv(outgoing[rank], sends, NULL, incoming[rank], receives, places,
                            ncclFloat, comms[rank], streams[rank]));
  }
  CHECK_NCCL(ncclGroupEnd());
  for (int rank = 0; rank < kRanks; ++rank) {
    CHECK_CUDA(cudaStreamSynchronize(streams[rank]));
    for (int peer = 0; peer < kRanks; ++peer) {
      const size_t got = count_between(peer, rank);
      const float* part = incoming[rank] + peer * kRanks;
      check_values("part", part, got, (float)peer);
      check_values("behind the part", part + got, kRanks - got, -1);
    }
    CHECK_CUDA(cudaFree(outgoing[rank]));
    CHECK_CUDA(cudaFree(incoming[rank]));
  }
}

/* Rank i gives i + 1 elements. In place: each rank's part lies where all parts are gathered. */
static void all_gather(ncclComm_t* comms, cudaStream_t* streams) {
  const size_t counts[kRanks] = {1, 2, 3, 4};
  const size_t places[kRanks] = {0, 1, 3, 6};
  float* all[kRanks];
  for (int rank = 0; rank < kRanks; ++rank) {
    CHECK_CUDA(cudaSetDevice(rank));
    all[rank] = device_floats(kMost, (float)rank);
  }
  CHECK_NCCL(ncclGroupStart());
  for (int rank = 0; rank < kRanks; ++rank) {
    CHECK_NCCL(catBarrier(comms[rank], streams[rank]));
    CHECK_NCCL(catAllGatherv(all[rank] + places[rank], counts[rank], all[rank], counts, NULL,
                             ncclFloat, comms[rank], streams[rank]));
  }
  CHECK_NCCL(ncclGroupEnd());
  for (int rank = 0; rank < kRanks; ++rank) {
    CHECK_CUDA(cudaStreamSynchronize(streams[rank]));
    for (int peer = 0; peer < kRanks; ++peer) {
      check_values("gathered", all[rank] + places[peer], counts[peer], (float)peer);
    }
    CHECK_CUDA(cudaFree(all[rank]));
  }
}

int main(void) {
  ncclComm_t comms[kRanks];
  cudaStream_t streams[kRanks];
  CHECK_NCCL(ncclCommInitAll(comms, kRanks, NULL));
  for (int rank = 0; rank < kRanks; ++rank) {
    CHECK_CUDA(cudaSetDevice(rank));
    CHECK_CUDA(cudaStreamCreate(&streams[rank]));
  }
  all_to_all(comms, streams);
  all_gather(comms, streams);
  for (int rank = 0; rank < kRanks; ++rank) {
    CHECK_NCCL(ncclCommDestroy(comms[rank]));
    CHECK_CUDA(cudaStreamDestroy(streams[rank]));
  }
  printf("uneven parts between %d ranks\n", kRanks);
  return 0;
}
