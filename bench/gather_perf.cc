// gather_perf: the root gets all ranks' data, one after the other.
#include "bench/perf/collective_test.h"

namespace catenary::perf {
namespace {

class Gather final : public CollectiveTest {
 public:
  const char* name() const override { return "Gather"; }
  bool has_root() const override { return true; }

  Shape shape(std::size_t count, std::size_t type_bytes, int nranks) const override {
    const std::size_t share = aligned_share(count, type_bytes, nranks);
    return {.send_count = share,
            .recv_count = share * static_cast<std::size_t>(nranks),
            .param_count = share,
            .in_place_send_offset = share};
  }

  std::vector<Segment> expected(const Shape& shape, int rank, int nranks, int root) const override {
    std::vector<Segment> segments;
    for (int source = 0; source < nranks && rank == root; ++source) {
      segments.push_back({.recv_offset = static_cast<std::size_t>(source) * shape.param_count,
                          .count = shape.param_count,
                          .source = source});
    }
    return segments;
  }

  double bus_factor(int nranks) const override { return (nranks - 1.0) / nranks; }

  ncclResult_t enqueue(const Call& call) const override {
    return ncclGather(call.send, call.recv, call.count, call.type, call.root, call.comm,
                      call.stream);
  }
};

}  // namespace

const CollectiveTest& collective_test() {
  static const Gather test;
  return test;
}

}  // namespace catenary::perf
