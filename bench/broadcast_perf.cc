// broadcast_perf: every rank gets the root's data.
#include "bench/perf/collective_test.h"

namespace catenary::perf {
namespace {

class Broadcast final : public CollectiveTest {
 public:
  const char* name() const override { return "Broadcast"; }
  bool has_root() const override { return true; }

  Shape shape(std::size_t count, std::size_t, int) const override {
    return {.send_count = count, .recv_count = count, .param_count = count};
  }

  std::vector<Segment> expected(const Shape& shape, int, int, int root) const override {
    return {{.count = shape.recv_count, .source = root}};
  }

  double bus_factor(int) const override { return 1.0; }

  ncclResult_t enqueue(const Call& call) const override {
    return ncclBroadcast(call.send, call.recv, call.count, call.type, call.root, call.comm,
                         call.stream);
  }
};

}  // namespace

const CollectiveTest& collective_test() {
  static const Broadcast test;
  return test;
}

}  // namespace catenary::perf
