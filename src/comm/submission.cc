// The part of Communicator that makes tasks of requests and puts them on streams.
#include <algorithm>

#include "src/comm/communicator.h"

namespace catenary {
namespace {

std::vector<Stream*> streams_beside(const Stream& main,
                                    std::span<const OperationRequest> requests) {
  std::vector<Stream*> others;
  for (const OperationRequest& request : requests) {
    if (request.stream == &main) continue;
    if (std::find(others.begin(), others.end(), request.stream) != others.end()) continue;
    others.push_back(request.stream);
  }
  return others;
}

ByteView memory_of(const void* base, std::size_t elements, std::size_t element_bytes) {
  return {static_cast<const std::byte*>(base), elements * element_bytes};
}

std::size_t end_of(const std::vector<Range>& parts) {
  std::size_t end = 0;
  for (const Range& part : parts) end = std::max(end, part.offset + part.count);
  return end;
}

// Whether input and output overlap: a rank then writes over what it has given.
bool shares_buffer(const OperationRequest& request, int nranks) {
  if (request.input == nullptr || request.output == nullptr) return false;
  std::size_t in = request.count;
  std::size_t out = request.count;
  if (request.parts != nullptr) {
    in = end_of(request.parts->input);
    out = end_of(request.parts->output);
  } else if (holds_part_per_rank(request.kind)) {
    const auto parts = static_cast<std::size_t>(nranks);
    if (request.kind != Collective::kReduceScatter && request.kind != Collective::kScatter)
      out *= parts;
    if (request.kind != Collective::kAllGather && request.kind != Collective::kGather) in *= parts;
  }
  const std::size_t bytes = element_bytes(request.type);
  const ByteView from = memory_of(request.input, in, bytes);
  const ByteView to = memory_of(request.output, out, bytes);
  return from.data() < to.data() + to.size() && to.data() < from.data() + from.size();
}

}  // namespace

TaskPtr Communicator::make_task(std::span<const OperationRequest> requests) {
  std::unique_ptr<GroupRun> run = take_run();
  run->begin(shared_from_this());
  in_flight_.fetch_add(1, std::memory_order_relaxed);
  TaskPtr task(run.release());
  std::vector<const OperationRequest*> own_sends;
  for (const OperationRequest& request : requests) {
    if (request.kind == Collective::kSend && request.root == rank_) own_sends.push_back(&request);
  }
  auto own_send = own_sends.begin();
  const std::lock_guard lock(issue_mutex_);
  for (const OperationRequest& request : requests) {
    const bool message = request.kind == Collective::kSend || request.kind == Collective::kRecv;
    if (!message || request.root != rank_) {
      add_operation(request, static_cast<GroupRun&>(*task));
    } else if (request.kind == Collective::kRecv) {
      add_own_message(**own_send++, request, static_cast<GroupRun&>(*task));
    }
  }
  return task;
}

// check() has made sure that each has its other half in the same group: together they are a copy.
void Communicator::add_own_message(const OperationRequest& send, const OperationRequest& receive,
                                   GroupRun& run) {
  RunSpec spec;
  spec.plan = &own_message_;
  spec.input = static_cast<const std::byte*>(send.input);
  spec.output = static_cast<std::byte*>(receive.output);
  spec.rank = rank_;
  Turn& turn = recv_turns_[static_cast<std::size_t>(rank_)];
  spec.descriptor.sequence = static_cast<std::uint32_t>(turn.taken);
  spec.descriptor.kind = Collective::kRecv;
  spec.descriptor.type = receive.type;
  spec.descriptor.count = receive.count;
  Descriptor sent = spec.descriptor;
  sent.kind = Collective::kSend;
  sent.type = send.type;
  sent.count = send.count;
  if (!matches(spec.descriptor, sent)) {
    throw_error(ErrorCode::kInvalidUsage, "ranks do not agree: rank %d runs %s, but also %s", rank_,
                describe(spec.descriptor).c_str(), describe(sent).c_str());
  }
  const std::size_t bytes = element_bytes(receive.type);
  spec.slicing = Slicing(Partition::split(receive.count, bytes, 1), slice_bytes_,
                         static_cast<std::uint32_t>(config_.slots - 1));
  run.add(spec, turn, turn.take());
}

// A stream of each group member waits for the whole group, before and after, as if the group had
// been posted on every one of them.
void Communicator::enqueue(std::span<const OperationRequest> requests, TaskPtr task) {
  Stream& main = *requests.front().stream;
  const std::vector<Stream*> others = streams_beside(main, requests);
  for (Stream* other : others) {
    Event before(false);
    other->record(before);
    main.wait_event(before);
  }
  main.enqueue(std::move(task));
  if (others.empty()) return;
  Event after(false);
  main.record(after);
  for (Stream* other : others) other->wait_event(after);
}

// On a stream of its own, behind what is on the requests' streams.
void Communicator::enqueue_aside(std::span<const OperationRequest> requests, TaskPtr task,
                                 Event& after) {
  Stream& aside = device_.create_stream(true);
  for (Stream* stream : streams_beside(aside, requests)) {
    Event before(false);
    stream->record(before);
    aside.wait_event(before);
  }
  aside.enqueue(std::move(task));
  aside.record(after);
  device_.destroy_stream(aside);
}

// What it takes to know the plan. Ranks know only their own counts of an AlltoAllv, and a pair of
// ranks has one plan each way, whatever the size: groups hold many of those.
PlanCache::Wanted Communicator::wanted(const OperationRequest& request) {
  const bool any_size = is_point_to_point(request.kind) || request.kind == Collective::kAllToAllV;
  return {.kind = request.kind,
          .count = any_size ? 0 : request.count,
          .element_bytes = element_bytes(request.type),
          .root = has_root(request.kind) ? request.root : 0,
          .scaled = request.reduction.scaling.from != Scaling::From::kNothing};
}

const PlanCache::Entry& Communicator::find_plan(const OperationRequest& request) {
  if (!is_point_to_point(request.kind)) return plans_->find(wanted(request));
  auto& plans = request.kind == Collective::kSend ? send_plans_ : recv_plans_;
  const PlanCache::Entry*& known = plans[static_cast<std::size_t>(request.root)];
  if (known == nullptr) known = &plans_->find(wanted(request));
  return *known;
}

void Communicator::add_operation(const OperationRequest& request, GroupRun& run) {
  const PlanCache::Entry& entry = find_plan(request);

  RunSpec spec;
  if (reduces(request.kind)) {
    spec.kernels = &kernels::reduce_kernels(request.type, request.reduction.op, isa_);
  }
  spec.input = static_cast<const std::byte*>(request.input);
  spec.output = static_cast<std::byte*>(request.output);
  spec.scaling = request.reduction.scaling;
  spec.divisor = request.reduction.divisor;
  spec.rank = rank_;
  const std::size_t parts =
      holds_part_per_rank(request.kind) ? static_cast<std::size_t>(nranks_) : 1;
  const std::size_t request_bytes = request.count * parts * element_bytes(request.type);
  spec.in_place = shares_buffer(request, nranks_);
  const bool lends = !spec.in_place || request_bytes >= least_in_place_;
  spec.least_loan = lends ? least_loan_ : SIZE_MAX;
  spec.past_caches = request_bytes >= least_past_caches_;

  const auto peer = static_cast<std::size_t>(request.root);
  Turn& turn = request.kind == Collective::kSend   ? send_turns_[peer]
               : request.kind == Collective::kRecv ? recv_turns_[peer]
                                                   : collective_turn_;
  spec.descriptor.sequence = static_cast<std::uint32_t>(turn.taken);
  spec.descriptor.kind = request.kind;
  spec.descriptor.type = request.type;
  spec.descriptor.reduction = reduces(request.kind) ? request.reduction.name : Reduction::kNone;
  if (&turn == &collective_turn_) {
    spec.descriptor.algorithm = static_cast<std::uint8_t>(entry.algorithm - algorithms().data());
    spec.descriptor.root = has_root(request.kind) ? request.root : 0;
  }
  spec.descriptor.count = request.count;
  spec.descriptor = whole(spec.descriptor);
  spec.parts = request.parts;
  if (request.kind == Collective::kAllGatherV)
    spec.descriptor.parts = digest_of(request.parts->output);
  if (request.kind == Collective::kReduceScatterV)
    spec.descriptor.parts = digest_of(request.parts->input);

  const std::uint64_t ticket = turn.take();
  const auto lanes = static_cast<int>(entry.lanes.size());
  for (int lane = 0; lane < lanes; ++lane) {
    const auto index = static_cast<std::size_t>(lane);
    spec.plan = &entry.lanes[index];
    spec.scratch = &scratch_[index];
    const std::size_t bytes = element_bytes(request.type);
    const Partition partition = request.parts != nullptr
                                    ? Partition::uneven(*request.parts, bytes, lane, lanes)
                                    : partition_for(request.kind, request.count, bytes,
                                                    spec.plan->chunk_count, lane, lanes);
    spec.slicing = Slicing(partition, entry.cut.slice_bytes, entry.cut.slices_per_pass());
    run.add(spec, turn, ticket);
  }
}

}  // namespace catenary
