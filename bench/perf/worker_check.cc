// The part of Worker that checks results: one more operation on known data, then every element of
// every receive buffer, the words around it, and the send buffer, which nobody may have changed.
#include <cstdio>
#include <cstring>
#include <string>

#include "bench/perf/failure.h"
#include "bench/perf/pattern.h"
#include "bench/perf/verify.h"
#include "bench/perf/worker.h"

namespace catenary::perf {
namespace {

// What receive buffers hold before: no pattern's period looks like this.
constexpr int kUnwritten = 0xe5;

// Other data for each check, so that what an earlier one left behind is wrong now.
std::uint64_t seed_of(const Request& request, int number) {
  std::uint64_t seed = request.shape.moved_count();
  for (const std::uint64_t part :
       {static_cast<std::uint64_t>(request.type.id),
        static_cast<std::uint64_t>(request.reduction.reduction),
        static_cast<std::uint64_t>(request.root + 1), std::uint64_t{request.in_place ? 1u : 0u},
        static_cast<std::uint64_t>(number)}) {
    seed = seed * 1000003u + part;
  }
  return seed;
}

Pattern pattern_of(const CollectiveTest& test, const Request& request, int nranks, int number) {
  const std::uint64_t seed = seed_of(request, number);
  return test.reduces() ? Pattern(request.type, request.reduction.reduction, nranks, seed)
                        : Pattern(request.type, seed);
}

}  // namespace

std::uint64_t Worker::check(const Request& request, int number) {
  for (const Rank& rank : ranks_) prepare(rank, request, number);
  team_.barrier(thread_);  // nobody writes to a peer whose buffer is not ready
  const bool group = test_.goes_in_groups() && ranks_.size() > 1;
  if (group) check_nccl(ncclGroupStart());
  for (const Rank& rank : ranks_) enqueue(rank, request, number);
  if (group) check_nccl(ncclGroupEnd());
  wait();
  std::uint64_t wrong = 0;
  for (const Rank& rank : ranks_) {
    if (options_.spoil) spoil(rank, request, number);
    wrong += judge(rank, request, number);
  }
  // Nobody prepares the next check or measurement while a peer may still look at this one.
  team_.barrier(thread_);
  return wrong;
}

void Worker::prepare(const Rank& rank, const Request& request, int number) const {
  const Buffers at = buffers(rank, request, number);
  std::memset(at.area, kUnwritten, at.area_bytes);
  fill_guard(at.area - kGuardBytes);
  fill_guard(at.area + at.area_bytes);
  const Pattern pattern = pattern_of(test_, request, rank.place().nranks, number);
  const Tile tile(pattern.input(rank.place().rank), request.type);
  tile.fill(at.send, request.shape.send_count, 0);
}

std::uint64_t Worker::judge(const Rank& rank, const Request& request, int number) {
  const Buffers at = buffers(rank, request, number);
  const RankPlace& place = rank.place();
  const Pattern pattern = pattern_of(test_, request, place.nranks, number);
  std::uint64_t wrong = 0;
  for (const Segment& segment :
       test_.expected(request.shape, place.rank, place.nranks, request.root)) {
    const bool reduced = segment.source == Segment::kReduced;
    const Tile tile(reduced ? pattern.reduced() : pattern.input(segment.source), request.type);
    const std::byte* received = at.recv + segment.recv_offset * request.type.bytes;
    const std::size_t here =
        tile.count_wrong(received, segment.count, segment.source_offset, pattern.tolerance_ulp());
    wrong += here;
    if (here > 0) {
      report_wrong(rank, request,
                   std::to_string(here) + " of " + std::to_string(segment.count) +
                       " elements wrong; first " +
                       tile.describe_first_wrong(received, segment.count, segment.source_offset,
                                                 pattern.tolerance_ulp()) +
                       (reduced ? "" : " of rank " + std::to_string(segment.source) + "'s part"));
    }
  }
  const std::size_t touched =
      count_touched(at.area - kGuardBytes) + count_touched(at.area + at.area_bytes);
  if (touched > 0) {
    report_wrong(rank, request, std::to_string(touched) + " words beside the buffer overwritten");
  }
  std::size_t changed = 0;
  if (!request.in_place) {
    const Tile tile(pattern.input(place.rank), request.type);
    changed = tile.count_wrong(at.send, request.shape.send_count, 0, 0);
  }
  if (changed > 0) {
    report_wrong(rank, request, std::to_string(changed) + " elements of the send buffer changed");
  }
  return wrong + touched + changed;
}

// Turns the sign of the last element of each part received.
void Worker::spoil(const Rank& rank, const Request& request, int number) const {
  const Buffers at = buffers(rank, request, number);
  for (const Segment& segment :
       test_.expected(request.shape, rank.place().rank, rank.place().nranks, request.root)) {
    if (segment.count == 0) continue;
    const std::size_t end = (segment.recv_offset + segment.count) * request.type.bytes;
    at.recv[end - 1] ^= std::byte{0x80};
  }
}

void Worker::report_wrong(const Rank& rank, const Request& request, const std::string& what) {
  if (reports_left_ == 0) return;
  std::fprintf(stderr, "# rank %d, %s %s%s%s, %zu bytes, %s: %s%s\n", rank.place().rank,
               test_.name(), request.type.name, test_.reduces() ? " " : "",
               test_.reduces() ? request.reduction.name : "",
               request.shape.moved_count() * request.type.bytes,
               request.in_place ? "in place" : "out of place", what.c_str(),
               --reports_left_ == 0 ? " (no more such lines from this thread)" : "");
}

}  // namespace catenary::perf
