// all_reduce_perf: every rank gets the reduction of all ranks' data.
#include "bench/perf/collective_test.h"

namespace catenary::perf {
namespace {

class AllReduce final : public CollectiveTest {
 public:
  const char* name() const override { return "AllReduce"; }
  bool reduces() const override { return true; }

  Shape shape(std::size_t count, std::size_t, int) const override {
    return {.send_count = count, .recv_count = count, .param_count = count};
  }

  std::vector<Segment> expected(const Shape& shape, int, int, int) const override {
    return {{.count = shape.recv_count}};
  }

  // Each element is sent n-1 times to be reduced and n-1 times to be spread, by n ranks.
  double bus_factor(int nranks) const override { return 2.0 * (nranks - 1) / nranks; }

  ncclResult_t enqueue(const Call& call) const override {
    return ncclAllReduce(call.send, call.recv, call.count, call.type, call.op, call.comm,
                         call.stream);
  }
};

}  // namespace

const CollectiveTest& collective_test() {
  static const AllReduce test;
  return test;
}

}  // namespace catenary::perf
