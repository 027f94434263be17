#include "bench/perf/worker.h"

#include <sched.h>

#include <algorithm>
#include <utility>

#include "bench/perf/failure.h"
#include "include/catenary/collectives.h"

namespace catenary::perf {
namespace {

double seconds(std::chrono::steady_clock::duration time) {
  return std::chrono::duration<double>(time).count();
}

Combine combine_as(Average average) {
  switch (average) {
    case Average::kRank0: return Combine::kFirst;
    case Average::kMean: return Combine::kMean;
    case Average::kMin: return Combine::kMin;
    case Average::kMax: return Combine::kMax;
  }
  throw std::logic_error("unknown average");
}

// Events of one rank, one before the first iteration and one after each.
class IterationClock {
 public:
  IterationClock(const Stream& stream, int iterations)
      : stream_(stream), events_(static_cast<std::size_t>(iterations) + 1) {
    events_[0].record(stream_);
  }
  void record(int iteration) { events_[static_cast<std::size_t>(iteration) + 1].record(stream_); }
  void raise_to_maximum(std::vector<double>& times_us) const {
    for (std::size_t i = 0; i < times_us.size(); ++i) {
      times_us[i] = std::max(times_us[i], events_[i + 1].microseconds_since(events_[i]));
    }
  }

 private:
  const Stream& stream_;
  std::vector<Event> events_;
};

}  // namespace

Worker::Worker(const CollectiveTest& test, const Options& options, Team& team, int thread,
               std::vector<Rank> ranks)
    : test_(test), options_(options), team_(team), thread_(thread), ranks_(std::move(ranks)) {}

void Worker::join_alone(const ncclUniqueId& id) {
  check_nccl(ncclGroupStart());
  for (Rank& rank : ranks_) {
    use_device(rank.place().device);
    rank.join(id);
  }
  check_nccl(ncclGroupEnd());
}

void Worker::register_buffers() {
  if (options_.registration == 0) return;
  check_nccl(ncclGroupStart());
  for (Rank& rank : ranks_) rank.register_buffers(options_.registration);
  check_nccl(ncclGroupEnd());
}

void Worker::begin_series(const DataType& type, Reduction reduction) {
  if (!test_.reduces()) return;
  for (Rank& rank : ranks_) rank.begin_series(type, reduction);
}

void Worker::end_series() {
  if (!test_.reduces()) return;
  for (Rank& rank : ranks_) rank.end_series();
}

// Each iteration works on another part of the buffers, so that a small size does not measure the
// caches alone.
Worker::Buffers Worker::buffers(const Rank& rank, const Request& request, int iteration) const {
  const std::size_t bytes = request.shape.moved_count() * request.type.bytes;
  const std::size_t places = bytes == 0 ? 1 : std::max<std::size_t>(1, options_.max_bytes / bytes);
  const std::size_t offset = options_.unalign * request.type.bytes +
                             bytes * (static_cast<std::size_t>(iteration) % places);
  std::byte* recv = rank.recv_area() + offset;
  if (!request.in_place) {
    return {recv, request.shape.recv_count * request.type.bytes, rank.send_area() + offset, recv};
  }
  const std::size_t step = static_cast<std::size_t>(rank.place().rank) * request.type.bytes;
  return {recv, bytes, recv + step * request.shape.in_place_send_offset,
          recv + step * request.shape.in_place_recv_offset};
}

void Worker::enqueue(const Rank& rank, const Request& request, int iteration) const {
  const Buffers at = buffers(rank, request, iteration);
  rank.stream().enter_device();
  check_nccl(test_.enqueue({at.send, at.recv, request.shape.param_count, request.type.id,
                            request.type.bytes, rank.op(), request.root, rank.place().rank,
                            rank.place().nranks, rank.comm(), rank.stream().handle()}));
}

void Worker::enqueue_iteration(const Request& request, int iteration) {
  const bool group = test_.goes_in_groups() && (ranks_.size() > 1 || options_.aggregated > 1);
  if (group) check_nccl(ncclGroupStart());
  for (int i = 0; i < options_.aggregated; ++i) {
    for (const Rank& rank : ranks_) {
      enqueue(rank, request, iteration * options_.aggregated + i);
    }
  }
  if (group) check_nccl(ncclGroupEnd());
}

void Worker::wait() {
  if (options_.timeout_s > 0) return wait_or_abort();
  for (const Rank& rank : ranks_) {
    rank.stream().synchronize();
    rank.check_async_error();
  }
}

void Worker::wait_or_abort() {
  const auto deadline = Clock::now() + std::chrono::seconds(options_.timeout_s);
  for (const Rank& rank : ranks_) {
    while (!rank.stream().idle()) {
      rank.check_async_error();
      if (Clock::now() >= deadline) {
        const std::string who = "rank " + std::to_string(rank.place().rank);
        for (Rank& each : ranks_) each.abort();
        throw TestFailure(failure_line(
            "timeout", who + " still waits after " + std::to_string(options_.timeout_s) + " s",
            std::source_location::current()));
      }
      sched_yield();
    }
    rank.check_async_error();
  }
}

// All ranks are here, and leave together. The team's meeting sleeps on sockets, after which ranks
// go up to 100 us apart: small sizes would be charged with that, so they meet again by barriers of
// the communicator, in which they look and do not sleep. Who was woken may also find himself on the
// core of who woke him, which takes the library as many meetings to notice, and 20 iterations of a
// small size are over before.
void Worker::line_up() {
  constexpr int kMeetings = 100;
  team_.barrier(thread_);
  const bool group = ranks_.size() > 1;
  for (int meeting = 0; meeting < kMeetings; ++meeting) {
    if (group) check_nccl(ncclGroupStart());
    for (const Rank& rank : ranks_) {
      rank.stream().enter_device();
      check_nccl(catBarrier(rank.comm(), rank.stream().handle()));
    }
    if (group) check_nccl(ncclGroupEnd());
  }
  wait();
}

// What is timed is found as a program finds it that runs for longer than this: the plan made, and
// the pages that the operations go through mapped, by peers too, which of memory that is used for
// the first time takes as long as a long operation, and several times as long as a short one.
void Worker::rehearse(const Request& request) {
  constexpr std::size_t kRehearsedBytes = std::size_t{256} << 20;
  const std::size_t bytes = request.shape.moved_count() * request.type.bytes;
  const std::size_t enough = 1 + kRehearsedBytes / std::max<std::size_t>(bytes, 1);
  const int most = std::max(options_.iterations, 1);
  const int iterations =
      static_cast<int>(std::min<std::size_t>(enough, static_cast<std::size_t>(most)));
  for (int i = 0; i < iterations; ++i) enqueue_iteration(request, i);
  wait();
}

Worker::Timing Worker::time_iterations(const Request& request) {
  Timing timing;
  rehearse(request);
  line_up();
  std::vector<IterationClock> clocks;
  if (options_.per_iteration) {
    clocks.reserve(ranks_.size());
    for (const Rank& rank : ranks_) clocks.emplace_back(rank.stream(), options_.iterations);
  }
  auto outside = Clock::duration::zero();
  const auto begin = Clock::now();
  for (int iteration = 0; iteration < options_.iterations; ++iteration) {
    enqueue_iteration(request, iteration);
    for (IterationClock& clock : clocks) clock.record(iteration);
    if (options_.blocking == Blocking::kNone) continue;
    wait();
    const auto waited = Clock::now();
    if (options_.blocking != Blocking::kWait) team_.barrier(thread_);
    if (options_.blocking == Blocking::kWaitAndUntimedBarrier) outside += Clock::now() - waited;
  }
  const auto enqueued = Clock::now();
  wait();
  const auto end = options_.report_cpu_time ? enqueued : Clock::now();
  timing.seconds_each = seconds(end - begin - outside) / options_.iterations / options_.aggregated;
  if (options_.per_iteration) {
    timing.iterations_us.resize(static_cast<std::size_t>(options_.iterations));
    for (const IterationClock& clock : clocks) clock.raise_to_maximum(timing.iterations_us);
  }
  return timing;
}

void Worker::warm_up(const Request& request) {
  for (int i = 0; i < options_.warmup_iterations; ++i) enqueue_iteration(request, i);
  wait();
}

Side Worker::measure(const Request& request) {
  const Timing timing = time_iterations(request);
  Side side;
  const double each = team_.combine(thread_, timing.seconds_each, combine_as(options_.average));
  const int nranks = ranks_.front().place().nranks;
  const auto bytes =
      static_cast<double>(test_.timed_count(request.shape, nranks) * request.type.bytes);
  side.time_us = each * 1e6;
  side.algorithm_gbs = each > 0 ? bytes / each / 1e9 : 0;
  side.bus_gbs = side.algorithm_gbs * test_.bus_factor(nranks);
  if (options_.per_iteration) {
    side.iterations = iteration_stats(team_.process_maxima(thread_, timing.iterations_us),
                                      options_.per_iteration_skip);
  }
  if (options_.checks > 0 && (!request.in_place || test_.defined_in_place())) {
    std::uint64_t wrong = 0;
    for (int number = 0; number < options_.checks; ++number) wrong += check(request, number);
    side.wrong = static_cast<std::uint64_t>(
        team_.combine(thread_, static_cast<double>(wrong), Combine::kSum));
  }
  return side;
}

}  // namespace catenary::perf
