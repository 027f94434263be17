// Rank: what one rank of a run owns: its stream, communicator, buffers and their registration.
//
// One thread uses it. The constructor allocates and does not communicate; the destructor destroys
// the communicator, which needs no other rank.
#pragma once

#include <cstddef>
#include <span>

#include "bench/perf/data_type.h"
#include "bench/perf/device_stream.h"
#include "bench/perf/options.h"
#include "include/nccl.h"

namespace catenary::perf {

// Which rank of its group, on which device.
struct RankPlace {
  int rank = 0;
  int nranks = 1;
  int device = 0;
};

// Memory of either kind: `bytes` at a page's beginning, and a page on either side, whose bytes next
// to the data serve as guards.
class Buffer {
 public:
  Buffer(MemoryKind kind, std::size_t bytes);
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&&) = delete;
  ~Buffer();

  std::byte* data() const { return base_ + kPage; }
  // All of it, for registration.
  std::span<std::byte> whole() const { return {base_, bytes_ + 2 * kPage}; }

 private:
  static constexpr std::size_t kPage = 4096;
  MemoryKind kind_;
  std::byte* base_ = nullptr;
  std::size_t bytes_;
};

class Rank {
 public:
  Rank(const RankPlace& place, const Options& options, std::size_t buffer_bytes);
  Rank(Rank&& other) noexcept;
  Rank& operator=(Rank&&) = delete;
  ~Rank();

  const RankPlace& place() const { return place_; }
  ncclComm_t comm() const { return comm_; }
  const Stream& stream() const { return stream_; }
  std::byte* send_area() const { return send_.data(); }
  std::byte* recv_area() const { return recv_.data(); }

  // Joins the communicator; within a group it is complete only when the group has ended.
  void join(const ncclUniqueId& id);
  // As -R asks; within a group where several ranks of a thread register windows.
  void register_buffers(int kind);

  // Gives the operation for a series; makes this rank's own for mulsum.
  void begin_series(const DataType& type, Reduction reduction);
  void end_series();
  ncclRedOp_t op() const { return op_; }

  // Throws if the communicator has failed.
  void check_async_error() const;
  void abort();

 private:
  RankPlace place_;
  Stream stream_;
  Buffer send_;
  Buffer recv_;
  ncclComm_t comm_ = nullptr;
  ncclRedOp_t op_ = ncclSum;
  bool own_op_ = false;
  void* registrations_[2] = {nullptr, nullptr};
  ncclWindow_t windows_[2] = {nullptr, nullptr};
};

}  // namespace catenary::perf
