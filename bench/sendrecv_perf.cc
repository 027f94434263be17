// sendrecv_perf: a ring, in which every rank sends to the next one and receives from the previous.
#include "bench/perf/collective_test.h"

namespace catenary::perf {
namespace {

class SendRecv final : public CollectiveTest {
 public:
  const char* name() const override { return "SendRecv"; }
  bool defined_in_place() const override { return false; }

  Shape shape(std::size_t count, std::size_t, int) const override {
    return {.send_count = count, .recv_count = count, .param_count = count};
  }

  std::vector<Segment> expected(const Shape& shape, int rank, int nranks, int) const override {
    return {{.count = shape.recv_count, .source = previous(rank, nranks)}};
  }

  double bus_factor(int) const override { return 1.0; }

  ncclResult_t enqueue(const Call& call) const override {
    const int next = (call.rank + 1) % call.nranks;
    ncclResult_t result = ncclGroupStart();
    if (result != ncclSuccess) return result;
    result = ncclSend(call.send, call.count, call.type, next, call.comm, call.stream);
    if (result == ncclSuccess) {
      result = ncclRecv(call.recv, call.count, call.type, previous(call.rank, call.nranks),
                        call.comm, call.stream);
    }
    const ncclResult_t end = ncclGroupEnd();
    return result == ncclSuccess ? end : result;
  }

 private:
  static int previous(int rank, int nranks) { return (rank + nranks - 1) % nranks; }
};

}  // namespace

const CollectiveTest& collective_test() {
  static const SendRecv test;
  return test;
}

}  // namespace catenary::perf
