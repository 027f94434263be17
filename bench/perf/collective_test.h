// CollectiveTest: all that one operation's tool has of its own. The rest is the frame in this
// folder: a tool is this class, filled in, and one function that hands it out.
//
// Immutable; called from every thread.
#pragma once

#include <cstddef>
#include <vector>

#include "include/nccl.h"

namespace catenary::perf {

// Elements of each buffer for one size of the table.
struct Shape {
  std::size_t send_count = 0;
  std::size_t recv_count = 0;
  std::size_t param_count = 0;  // what the operation's count argument is; the "count" column
  // In place, both buffers lie in one: rank r's begin r times so many elements into it.
  std::size_t in_place_send_offset = 0;
  std::size_t in_place_recv_offset = 0;

  // Elements of what is moved: the "size" column.
  std::size_t moved_count() const { return send_count > recv_count ? send_count : recv_count; }
};

// The number of elements a rank gets of `count`, such that each begins at 16 bytes.
inline std::size_t aligned_share(std::size_t count, std::size_t type_bytes, int nranks) {
  const std::size_t step = 16 / type_bytes;
  return count / static_cast<std::size_t>(nranks) / step * step;
}

// A part of the receive buffer, and whose elements it must hold: those of the input of rank
// `source`, or of all ranks' inputs reduced, from `source_offset` on.
struct Segment {
  static constexpr int kReduced = -1;
  std::size_t recv_offset = 0;
  std::size_t count = 0;
  int source = kReduced;
  std::size_t source_offset = 0;
};

// One rank's call.
struct Call {
  const void* send;
  void* recv;
  std::size_t count;
  ncclDataType_t type;
  std::size_t type_bytes;
  ncclRedOp_t op;
  int root;
  int rank;
  int nranks;
  ncclComm_t comm;
  cudaStream_t stream;
};

class CollectiveTest {
 public:
  virtual ~CollectiveTest() = default;

  virtual const char* name() const = 0;
  virtual bool reduces() const { return false; }
  virtual bool has_root() const { return false; }
  // Whether in-place results are defined; where not, they are timed and not judged.
  virtual bool defined_in_place() const { return true; }

  // Why it cannot be done by so many ranks; null: it can.
  virtual const char* refuses(int /*nranks*/) const { return nullptr; }

  // Whether calls of several ranks may be one group. Not if a call's parts must follow each other.
  virtual bool goes_in_groups() const { return true; }

  virtual Shape shape(std::size_t count, std::size_t type_bytes, int nranks) const = 0;
  // What `rank` must have received.
  virtual std::vector<Segment> expected(const Shape& shape, int rank, int nranks,
                                        int root) const = 0;
  // The elements that bandwidth is reckoned from.
  virtual std::size_t timed_count(const Shape& shape, int /*nranks*/) const {
    return shape.moved_count();
  }
  // Bus bandwidth over algorithm bandwidth.
  virtual double bus_factor(int nranks) const = 0;
  virtual ncclResult_t enqueue(const Call& call) const = 0;
};

// Every tool defines this one.
const CollectiveTest& collective_test();

}  // namespace catenary::perf
