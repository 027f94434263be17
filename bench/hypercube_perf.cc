// hypercube_perf: an all-gather by sends and receives along the edges of a hypercube: in each round
// a rank exchanges all it has with the rank whose number differs in one bit.
#include "bench/perf/collective_test.h"
#include "include/catenary/device.h"

namespace catenary::perf {
namespace {

class Hypercube final : public CollectiveTest {
 public:
  const char* name() const override { return "HyperCube"; }
  bool goes_in_groups() const override { return false; }  // nor could its rounds
  const char* refuses(int nranks) const override {
    return (nranks & (nranks - 1)) == 0 ? nullptr : "a hypercube has a power of two of corners";
  }

  Shape shape(std::size_t count, std::size_t type_bytes, int nranks) const override {
    const std::size_t share = aligned_share(count, type_bytes, nranks);
    return {.send_count = share,
            .recv_count = share * static_cast<std::size_t>(nranks),
            .param_count = share,
            .in_place_send_offset = share};
  }

  std::vector<Segment> expected(const Shape& shape, int, int nranks, int) const override {
    std::vector<Segment> segments;
    for (int source = 0; source < nranks; ++source) {
      segments.push_back({.recv_offset = static_cast<std::size_t>(source) * shape.param_count,
                          .count = shape.param_count,
                          .source = source});
    }
    return segments;
  }

  // What a rank has of its own goes nowhere.
  std::size_t timed_count(const Shape& shape, int) const override {
    return shape.recv_count - shape.param_count;
  }
  double bus_factor(int) const override { return 1.0; }

  ncclResult_t enqueue(const Call& call) const override {
    const std::size_t share = call.count * call.type_bytes;
    auto* const all = static_cast<std::byte*>(call.recv);
    std::byte* const own = all + static_cast<std::size_t>(call.rank) * share;
    if (own != call.send && catMemcpyAsync(own, call.send, share, call.stream) != catSuccess) {
      return ncclUnhandledCudaError;
    }
    for (int bit = 1; bit < call.nranks; bit <<= 1) {
      const int mine = call.rank & ~(bit - 1);
      const ncclResult_t result = exchange(call, bit, all + static_cast<std::size_t>(mine) * share,
                                           all + static_cast<std::size_t>(mine ^ bit) * share);
      if (result != ncclSuccess) return result;
    }
    return ncclSuccess;
  }

 private:
  static ncclResult_t exchange(const Call& call, int bit, const std::byte* out, std::byte* in) {
    const std::size_t count = call.count * static_cast<std::size_t>(bit);
    const int peer = call.rank ^ bit;
    ncclResult_t result = ncclGroupStart();
    if (result != ncclSuccess) return result;
    result = ncclSend(out, count, call.type, peer, call.comm, call.stream);
    if (result == ncclSuccess) {
      result = ncclRecv(in, count, call.type, peer, call.comm, call.stream);
    }
    const ncclResult_t end = ncclGroupEnd();
    return result == ncclSuccess ? end : result;
  }
};

}  // namespace

const CollectiveTest& collective_test() {
  static const Hypercube test;
  return test;
}

}  // namespace catenary::perf
