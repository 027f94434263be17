// alltoallv_perf: part i of rank j's data goes to part j of rank i, and parts differ in length:
// some are empty, some are quarters of the largest. How much two ranks send each other is fixed by
// their numbers, and the same in both directions, so that it can be done in place.
#include <algorithm>

#include "bench/perf/collective_test.h"
#include "include/catenary/collectives.h"

namespace catenary::perf {
namespace {

// What rank `from` sends to rank `to`, and the other way round, if the largest part has `share`
// elements.
std::size_t part_of(std::size_t share, int from, int to) {
  return share * static_cast<std::size_t>((from * to + from + to + 4) % 5) / 4;
}

class AlltoAllv final : public CollectiveTest {
 public:
  const char* name() const override { return "AlltoAllv"; }

  // As much as the rank sends or receives that has most to do.
  Shape shape(std::size_t count, std::size_t type_bytes, int nranks) const override {
    const std::size_t share = aligned_share(count, type_bytes, nranks);
    Shape shape{.send_count = 0, .recv_count = 0, .param_count = share};
    for (int rank = 0; rank < nranks; ++rank) {
      std::size_t sent = 0;
      std::size_t received = 0;
      for (int peer = 0; peer < nranks; ++peer) {
        sent += part_of(share, rank, peer);
        received += part_of(share, peer, rank);
      }
      shape.send_count = std::max(shape.send_count, sent);
      shape.recv_count = std::max(shape.recv_count, received);
    }
    return shape;
  }

  std::vector<Segment> expected(const Shape& shape, int rank, int nranks, int) const override {
    std::vector<Segment> segments;
    std::size_t at = 0;
    for (int source = 0; source < nranks; ++source) {
      Segment segment{
          .recv_offset = at, .count = part_of(shape.param_count, source, rank), .source = source};
      for (int before = 0; before < rank; ++before) {
        segment.source_offset += part_of(shape.param_count, source, before);
      }
      at += segment.count;
      segments.push_back(segment);
    }
    return segments;
  }

  double bus_factor(int nranks) const override { return (nranks - 1.0) / nranks; }

  ncclResult_t enqueue(const Call& call) const override {
    std::vector<std::size_t> sent;
    std::vector<std::size_t> received;
    for (int peer = 0; peer < call.nranks; ++peer) {
      sent.push_back(part_of(call.count, call.rank, peer));
      received.push_back(part_of(call.count, peer, call.rank));
    }
    return catAlltoAllv(call.send, sent.data(), nullptr, call.recv, received.data(), nullptr,
                        call.type, call.comm, call.stream);
  }
};

}  // namespace

const CollectiveTest& collective_test() {
  static const AlltoAllv test;
  return test;
}

}  // namespace catenary::perf
