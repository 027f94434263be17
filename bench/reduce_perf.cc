// reduce_perf: the root gets the reduction of all ranks' data.
#include "bench/perf/collective_test.h"

namespace catenary::perf {
namespace {

class Reduce final : public CollectiveTest {
 public:
  const char* name() const override { return "Reduce"; }
  bool reduces() const override { return true; }
  bool has_root() const override { return true; }

  Shape shape(std::size_t count, std::size_t, int) const override {
    return {.send_count = count, .recv_count = count, .param_count = count};
  }

  std::vector<Segment> expected(const Shape& shape, int rank, int, int root) const override {
    if (rank != root) return {};
    return {{.count = shape.recv_count}};
  }

  double bus_factor(int) const override { return 1.0; }

  ncclResult_t enqueue(const Call& call) const override {
    return ncclReduce(call.send, call.recv, call.count, call.type, call.op, call.root, call.comm,
                      call.stream);
  }
};

}  // namespace

const CollectiveTest& collective_test() {
  static const Reduce test;
  return test;
}

}  // namespace catenary::perf
