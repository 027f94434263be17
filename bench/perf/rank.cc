#include "bench/perf/rank.h"

#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

#include "bench/perf/failure.h"
#include "bench/perf/pattern.h"

namespace catenary::perf {
namespace {

ncclRedOp_t built_in(Reduction reduction) {
  switch (reduction) {
    case Reduction::kSum: return ncclSum;
    case Reduction::kProd: return ncclProd;
    case Reduction::kMin: return ncclMin;
    case Reduction::kMax: return ncclMax;
    case Reduction::kAvg: return ncclAvg;
    case Reduction::kMulSum: break;
  }
  throw std::logic_error("a reduction that is made for each rank");
}

}  // namespace

Buffer::Buffer(MemoryKind kind, std::size_t bytes) : kind_(kind), bytes_(bytes) {
  const std::size_t whole = bytes_ + 2 * kPage;
  void* base = nullptr;
  if (kind_ == MemoryKind::kMapped) {
    check_nccl(ncclMemAlloc(&base, whole));
  } else if (const int error = posix_memalign(&base, kPage, whole); error != 0) {
    throw_errno("allocate " + std::to_string(whole) + " bytes for a buffer", error);
  }
  base_ = static_cast<std::byte*>(base);
  // Every page exists before anything is timed.
  std::memset(base_, 0, whole);
}

Buffer::Buffer(Buffer&& other) noexcept
    : kind_(other.kind_), base_(std::exchange(other.base_, nullptr)), bytes_(other.bytes_) {}

Buffer::~Buffer() {
  if (base_ == nullptr) return;
  if (kind_ == MemoryKind::kMapped) {
    ncclMemFree(base_);
  } else {
    std::free(base_);
  }
}

Rank::Rank(const RankPlace& place, const Options& options, std::size_t buffer_bytes)
    : place_(place),
      stream_(place.device, options.null_stream),
      send_(options.memory, buffer_bytes),
      recv_(options.memory, buffer_bytes) {}

Rank::Rank(Rank&& other) noexcept
    : place_(other.place_),
      stream_(std::move(other.stream_)),
      send_(std::move(other.send_)),
      recv_(std::move(other.recv_)),
      comm_(std::exchange(other.comm_, nullptr)),
      op_(other.op_),
      own_op_(std::exchange(other.own_op_, false)),
      registrations_{std::exchange(other.registrations_[0], nullptr),
                     std::exchange(other.registrations_[1], nullptr)},
      windows_{std::exchange(other.windows_[0], nullptr),
               std::exchange(other.windows_[1], nullptr)} {}

Rank::~Rank() {
  if (comm_ == nullptr) return;
  for (void* handle : registrations_) {
    if (handle != nullptr) ncclCommDeregister(comm_, handle);
  }
  for (const ncclWindow_t window : windows_) {
    if (window != nullptr) ncclCommWindowDeregister(comm_, window);
  }
  ncclCommDestroy(comm_);
}

void Rank::join(const ncclUniqueId& id) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  check_nccl(ncclCommInitRankConfig(&comm_, place_.nranks, id, place_.rank, &config));
}

void Rank::register_buffers(int kind) {
  const Buffer* buffers[] = {&send_, &recv_};
  for (std::size_t i = 0; i < 2; ++i) {
    const std::span<std::byte> whole = buffers[i]->whole();
    if (kind == 1) {
      check_nccl(ncclCommRegister(comm_, whole.data(), whole.size(), &registrations_[i]));
    } else if (kind == 2) {
      check_nccl(ncclCommWindowRegister(comm_, whole.data(), whole.size(), &windows_[i],
                                        NCCL_WIN_COLL_SYMMETRIC));
    }
  }
}

void Rank::begin_series(const DataType& type, Reduction reduction) {
  own_op_ = reduction == Reduction::kMulSum;
  if (!own_op_) {
    op_ = built_in(reduction);
    return;
  }
  std::uint64_t factor = Pattern::premul_bits(type, place_.rank);
  check_nccl(ncclRedOpCreatePreMulSum(&op_, &factor, type.id, ncclScalarHostImmediate, comm_));
}

void Rank::end_series() {
  if (std::exchange(own_op_, false)) check_nccl(ncclRedOpDestroy(op_, comm_));
}

void Rank::check_async_error() const {
  ncclResult_t state = ncclSuccess;
  check_nccl(ncclCommGetAsyncError(comm_, &state));
  if (state != ncclInProgress) check_nccl(state);
}

void Rank::abort() {
  if (comm_ != nullptr) ncclCommAbort(std::exchange(comm_, nullptr));
}

}  // namespace catenary::perf
