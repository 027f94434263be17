// scatter_perf: rank i gets the i-th part of the root's data.
#include "bench/perf/collective_test.h"

namespace catenary::perf {
namespace {

class Scatter final : public CollectiveTest {
 public:
  const char* name() const override { return "Scatter"; }
  bool has_root() const override { return true; }

  Shape shape(std::size_t count, std::size_t type_bytes, int nranks) const override {
    const std::size_t share = aligned_share(count, type_bytes, nranks);
    return {.send_count = share * static_cast<std::size_t>(nranks),
            .recv_count = share,
            .param_count = share,
            .in_place_recv_offset = share};
  }

  std::vector<Segment> expected(const Shape& shape, int rank, int, int root) const override {
    return {{.count = shape.param_count,
             .source = root,
             .source_offset = static_cast<std::size_t>(rank) * shape.param_count}};
  }

  double bus_factor(int nranks) const override { return (nranks - 1.0) / nranks; }

  ncclResult_t enqueue(const Call& call) const override {
    return ncclScatter(call.send, call.recv, call.count, call.type, call.root, call.comm,
                       call.stream);
  }
};

}  // namespace

const CollectiveTest& collective_test() {
  static const Scatter test;
  return test;
}

}  // namespace catenary::perf
