// The cat* functions that enqueue: collectives that NCCL has not.
#include "catenary/collectives.h"

#include <algorithm>
#include <iterator>

#include "src/api/arguments.h"
#include "src/api/comm_handle.h"
#include "src/api/enqueue.h"
#include "src/api/export.h"
#include "src/api/guard.h"

namespace {

using namespace catenary;

constexpr std::size_t kMost = SIZE_MAX >> 1;

// The parts that counts and displacements describe; displs may be null.
std::vector<Range> parts_of(const char* function, const char* name, const std::size_t* counts,
                            const std::size_t* displs, int nranks) {
  check_pointer(counts, function, name);
  std::vector<Range> parts;
  std::size_t packed = 0;
  for (int rank = 0; rank < nranks; ++rank) {
    const std::size_t count = counts[rank];
    if (count > kMost - packed) {
      throw_error(ErrorCode::kInvalidArgument, "%s : %s are more than memory can hold", function,
                  name);
    }
    const std::size_t displ = displs != nullptr ? displs[rank] : packed;
    parts.push_back({count == 0 ? 0 : displ, count});
    packed += count;
  }
  return parts;
}

// Results would depend on who comes first.
void check_apart(const char* function, std::vector<Range> parts) {
  std::erase_if(parts, [](const Range& part) { return part.count == 0; });
  if (!std::ranges::is_sorted(parts, {}, &Range::offset)) {
    std::ranges::sort(parts, {}, &Range::offset);
  }
  const auto overlap = [](const Range& part, const Range& next) {
    return next.offset - part.offset < part.count;
  };
  const auto found = std::ranges::adjacent_find(parts, overlap);
  if (found == parts.end()) return;
  throw_error(ErrorCode::kInvalidArgument,
              "%s : parts that are received overlap: %zu elements at %zu, and others at %zu",
              function, found->count, found->offset, std::next(found)->offset);
}

std::size_t total(const std::vector<Range>& parts) {
  std::size_t sum = 0;
  for (const Range& part : parts) sum += part.count;
  return sum;
}

// The count that a rank gives for itself, in two places.
void check_own(const char* function, int rank, std::size_t one, std::size_t other) {
  if (one == other) return;
  throw_error(ErrorCode::kInvalidArgument,
              "%s : rank %d sends itself %zu elements, but is to receive %zu", function, rank, one,
              other);
}

std::shared_ptr<const UnevenParts> shared(std::vector<Range> input, std::vector<Range> output) {
  return std::make_shared<const UnevenParts>(UnevenParts{std::move(input), std::move(output)});
}

}  // namespace

CATENARY_EXPORT ncclResult_t catAlltoAllv(const void* sendbuff, const size_t sendcounts[],
                                          const size_t sdispls[], void* recvbuff,
                                          const size_t recvcounts[], const size_t rdispls[],
                                          ncclDataType_t datatype, ncclComm_t comm,
                                          cudaStream_t stream) {
  return guarded([&] {
    constexpr const char* kName = "AlltoAllv";
    const CommCall call(comm, kName);
    const auto own = static_cast<std::size_t>(call->rank());
    std::vector<Range> sent = parts_of(kName, "sendcounts", sendcounts, sdispls, call->nranks());
    std::vector<Range> taken = parts_of(kName, "recvcounts", recvcounts, rdispls, call->nranks());
    check_own(kName, call->rank(), sent[own].count, taken[own].count);
    if (rdispls != nullptr) check_apart(kName, taken);
    const std::size_t count = total(sent);
    enqueue({kName, Collective::kAllToAllV, sendbuff, recvbuff, count, datatype, -1, 0, comm,
             stream, shared(std::move(sent), std::move(taken))});
  });
}

CATENARY_EXPORT ncclResult_t catAllGatherv(const void* sendbuff, size_t sendcount, void* recvbuff,
                                           const size_t recvcounts[], const size_t rdispls[],
                                           ncclDataType_t datatype, ncclComm_t comm,
                                           cudaStream_t stream) {
  return guarded([&] {
    constexpr const char* kName = "AllGatherv";
    const CommCall call(comm, kName);
    std::vector<Range> taken = parts_of(kName, "recvcounts", recvcounts, rdispls, call->nranks());
    check_own(kName, call->rank(), sendcount, taken[static_cast<std::size_t>(call->rank())].count);
    if (rdispls != nullptr) check_apart(kName, taken);
    const std::size_t count = total(taken);
    enqueue({kName, Collective::kAllGatherV, sendbuff, recvbuff, count, datatype, -1, 0, comm,
             stream, shared({{0, sendcount}}, std::move(taken))});
  });
}

CATENARY_EXPORT ncclResult_t catReduceScatterv(const void* sendbuff, const size_t sendcounts[],
                                               const size_t sdispls[], void* recvbuff,
                                               size_t recvcount, ncclDataType_t datatype,
                                               ncclRedOp_t op, ncclComm_t comm,
                                               cudaStream_t stream) {
  return guarded([&] {
    constexpr const char* kName = "ReduceScatterv";
    const CommCall call(comm, kName);
    std::vector<Range> sent = parts_of(kName, "sendcounts", sendcounts, sdispls, call->nranks());
    check_own(kName, call->rank(), sent[static_cast<std::size_t>(call->rank())].count, recvcount);
    const std::size_t count = total(sent);
    enqueue({kName, Collective::kReduceScatterV, sendbuff, recvbuff, count, datatype, op, 0, comm,
             stream, shared(std::move(sent), {{0, recvcount}})});
  });
}

CATENARY_EXPORT ncclResult_t catMarkCollectives(ncclComm_t comm, uint32_t mark) {
  return guarded([&] { CommCall(comm, "catMarkCollectives")->set_mark(mark); });
}

CATENARY_EXPORT ncclResult_t catBarrier(ncclComm_t comm, cudaStream_t stream) {
  return guarded([&] {
    enqueue({"Barrier", Collective::kBarrier, nullptr, nullptr, 0, ncclInt8, -1, 0, comm, stream});
  });
}
