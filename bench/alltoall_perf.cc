// alltoall_perf: part i of rank j's data goes to part j of rank i.
#include "bench/perf/collective_test.h"

namespace catenary::perf {
namespace {

class AlltoAll final : public CollectiveTest {
 public:
  const char* name() const override { return "AlltoAll"; }

  Shape shape(std::size_t count, std::size_t type_bytes, int nranks) const override {
    const std::size_t share = aligned_share(count, type_bytes, nranks);
    const std::size_t whole = share * static_cast<std::size_t>(nranks);
    return {.send_count = whole, .recv_count = whole, .param_count = share};
  }

  std::vector<Segment> expected(const Shape& shape, int rank, int nranks, int) const override {
    std::vector<Segment> segments;
    for (int source = 0; source < nranks; ++source) {
      segments.push_back({.recv_offset = static_cast<std::size_t>(source) * shape.param_count,
                          .count = shape.param_count,
                          .source = source,
                          .source_offset = static_cast<std::size_t>(rank) * shape.param_count});
    }
    return segments;
  }

  double bus_factor(int nranks) const override { return (nranks - 1.0) / nranks; }

  ncclResult_t enqueue(const Call& call) const override {
    return ncclAlltoAll(call.send, call.recv, call.count, call.type, call.comm, call.stream);
  }
};

}  // namespace

const CollectiveTest& collective_test() {
  static const AlltoAll test;
  return test;
}

}  // namespace catenary::perf
