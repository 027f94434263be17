#include "src/comm/communicator.h"

#include <algorithm>
#include <cstring>

#include "src/base/log.h"
#include "src/device/event.h"
#include "src/topology/machine.h"

namespace catenary {
namespace {

// Bytes that the opening of a message needs beside its data.
constexpr std::size_t kSlotOverhead = kPaddedDescriptorBytes;
// Tasks kept for the next operations; more are freed.
constexpr std::size_t kPooledRuns = 64;
constexpr std::int64_t kAbortWait_ms = 100;
// How long a rank that lost a connection waits to hear of a death elsewhere.
constexpr std::int64_t kNewsWait_ms = 20;

std::size_t round_up(std::size_t value, std::size_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

TransportContext transport_context(const Membership& membership, std::size_t slice_bytes,
                                   const Config& config) {
  TransportContext context;
  context.rank = membership.rank();
  context.nranks = membership.nranks();
  context.key = membership.derive_key("transport");
  context.slot_bytes = slice_bytes + kSlotOverhead;
  context.slots = static_cast<std::uint32_t>(config.slots);
  context.config = &config;
  return context;
}

// What every rank publishes about itself.
struct RankFacts {
  MachineFacts machine;
  std::uint64_t slice_bytes;
  std::uint64_t slots;
};

// All ranks must choose the same algorithms, so they agree on the most crowded machine; and they
// must cut messages alike, or a sum would be of parts that do not belong together.
MachineFacts agree_on_facts(Membership& membership, const RankFacts& mine, const Wait& wait) {
  Bytes blob(sizeof mine);
  std::memcpy(blob.data(), &mine, sizeof mine);
  MachineFacts worst = mine.machine;
  const std::vector<Bytes> all = membership.all_gather(blob, wait);
  for (std::size_t peer = 0; peer < all.size(); ++peer) {
    RankFacts theirs;
    if (all[peer].size() != sizeof theirs) {
      throw_error(ErrorCode::kRemote, "rank %zu published malformed facts about itself", peer);
    }
    std::memcpy(&theirs, all[peer].data(), sizeof theirs);
    if (theirs.slots != mine.slots || theirs.slice_bytes != mine.slice_bytes) {
      throw_error(ErrorCode::kInvalidUsage,
                  "rank %d has %llu slots of %llu bytes, but rank %zu has %llu of %llu; set "
                  "CATENARY_SLOTS and CATENARY_SLOT_BYTES alike for all ranks",
                  membership.rank(), static_cast<unsigned long long>(mine.slots),
                  static_cast<unsigned long long>(mine.slice_bytes), peer,
                  static_cast<unsigned long long>(theirs.slots),
                  static_cast<unsigned long long>(theirs.slice_bytes));
    }
    worst.local_ranks = std::max(worst.local_ranks, theirs.machine.local_ranks);
    worst.cores = std::min(worst.cores, theirs.machine.cores);
  }
  return worst;
}

Error as_error(const std::exception& error) {
  const auto* known = dynamic_cast<const Error*>(&error);
  return known != nullptr ? *known : Error(ErrorCode::kSystem, error.what());
}

}  // namespace

Communicator::Communicator(int rank, int nranks, Device& device, const CommunicatorOptions& options,
                           const Config& config)
    : rank_(rank),
      nranks_(nranks),
      device_(device),
      options_(options),
      config_(config),
      reductions_(nranks),
      isa_(kernels::isa_from(config)),
      slice_bytes_(round_up(static_cast<std::size_t>(config.slot_bytes), 64)),
      send_turns_(static_cast<std::size_t>(nranks)),
      recv_turns_(static_cast<std::size_t>(nranks)) {}

Communicator::~Communicator() = default;

// A catch of its own, because the thread that polls for the outcome of a join in the background is
// not the one in which it fails.
void Communicator::join(const UniqueId& id, const TransportFactory& transports) {
  id_ = id;
  try {
    meet(id, transports);
  } catch (const std::exception& error) {
    fail(as_error(error), false);
    throw;
  }
}

void Communicator::meet(const UniqueId& id, const TransportFactory& transports) {
  const Wait wait = wait_until_timeout();
  log_info(
      Subsystem::kInit, device_.ordinal(),
      format("[Rank %d] ncclCommInitRankConfig comm %p rank %d nranks %d cudaDev %d - Init START",
             rank_, static_cast<void*>(this), rank_, nranks_, device_.ordinal()));
  auto membership = std::make_unique<Membership>(id, rank_, nranks_, wait, config_);
  const TransportContext context = transport_context(*membership, slice_bytes_, config_);
  auto links = std::make_unique<LinkTable>(transports(context), *membership, wait);
  const MachineFacts machine = agree_on_facts(*membership,
                                              {{links->local_ranks(), usable_cores()},
                                               slice_bytes_,
                                               static_cast<std::uint64_t>(config_.slots)},
                                              wait);
  device_.wait_policy_note_ranks(links->local_ranks());

  const std::lock_guard lock(issue_mutex_);
  plans_ = std::make_unique<PlanCache>(rank_, nranks_, *links, machine, config_.algorithm);
  for (Transport* transport : links->in_use()) {
    if (transport->doorbell() == nullptr) {
      polled_.push_back(transport);
    } else {
      doorbells_.push_back(transport->doorbell());
    }
  }
  if (!polled_.empty()) doorbells_.clear();
  links_ = std::move(links);
  membership_ = std::move(membership);
  stall_watch_.emplace(rank_, *links_, config_.stall_report_s);
  joined_.store(true, std::memory_order_release);
  log_info(
      Subsystem::kInit, device_.ordinal(),
      format(
          "[Rank %d] ncclCommInitRankConfig comm %p rank %d nranks %d cudaDev %d commId 0x%llx - "
          "Init COMPLETE",
          rank_, static_cast<void*>(this), rank_, nranks_, device_.ordinal(),
          static_cast<unsigned long long>(membership_->session())));
}

Wait Communicator::wait_until_timeout() const {
  return {Deadline::after_ms(config_.init_timeout_s * 1000), &aborted_};
}

std::vector<Bytes> Communicator::exchange(ByteView mine) {
  throw_if_failed();
  return membership_->all_gather(mine, wait_until_timeout());
}

// A message to oneself can only be taken by a receive of the same group.
void Communicator::check(std::span<const OperationRequest> requests) {
  throw_if_failed();
  int sends = 0;
  int receives = 0;
  for (const OperationRequest& request : requests) {
    if (request.root != rank_) continue;
    if (request.kind == Collective::kSend) ++sends;
    if (request.kind == Collective::kRecv) ++receives;
  }
  if (sends == receives) return;
  throw_error(ErrorCode::kInvalidUsage,
              "Trying to %s without a matching %s in the same group (rank %d)",
              sends > receives ? "send to self" : "recv from self",
              sends > receives ? "recv" : "send", rank_);
}

// Turns are taken and streams are joined under one lock, or two threads could enqueue on one stream
// in the other order than they took their turns. A failure in between breaks the order of turns,
// and the peers may already count on us: it is the communicator's.
void Communicator::submit(std::span<const OperationRequest> requests) {
  const std::lock_guard lock(submit_mutex_);
  if (left_.load(std::memory_order_acquire)) {
    throw_error(ErrorCode::kInvalidUsage, "rank %d has left the communicator", rank_);
  }
  try {
    enqueue(requests, make_task(requests));
  } catch (const std::exception& error) {
    fail(as_error(error), true);
    throw;
  }
}

TaskPtr Communicator::make_task(std::span<const OperationRequest> requests) {
  std::unique_ptr<GroupRun> run = take_run();
  run->begin(shared_from_this());
  in_flight_.fetch_add(1, std::memory_order_relaxed);
  TaskPtr task(run.release());
  const std::lock_guard lock(issue_mutex_);
  for (const OperationRequest& request : requests) {
    Turn* turn = nullptr;
    const RunSpec spec = make_spec(request, turn);
    static_cast<GroupRun&>(*task).add(spec, *turn);
  }
  return task;
}

// A stream of each group member waits for the whole group, before and after, as if the group had
// been posted on every one of them.
void Communicator::enqueue(std::span<const OperationRequest> requests, TaskPtr task) {
  Stream& main = *requests.front().stream;
  std::vector<Stream*> others;
  for (const OperationRequest& request : requests) {
    if (request.stream == &main) continue;
    if (std::find(others.begin(), others.end(), request.stream) != others.end()) continue;
    others.push_back(request.stream);
  }
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

std::unique_ptr<GroupRun> Communicator::take_run() {
  const std::lock_guard lock(pool_mutex_);
  if (pool_.empty()) return std::make_unique<GroupRun>();
  std::unique_ptr<GroupRun> run = std::move(pool_.back());
  pool_.pop_back();
  return run;
}

void Communicator::run_over(GroupRun& run) noexcept {
  std::unique_ptr<GroupRun> owned(&run);
  {
    const std::lock_guard lock(pool_mutex_);
    if (pool_.size() < kPooledRuns) pool_.push_back(std::move(owned));
  }
  in_flight_.fetch_sub(1, std::memory_order_release);
}

const PlanCache::Entry& Communicator::find_plan(const OperationRequest& request) {
  const bool scaled = request.reduction.scaling.from != Scaling::From::kNothing;
  const auto parts = static_cast<std::size_t>(holds_part_per_rank(request.kind) ? nranks_ : 1);
  const std::size_t bytes = request.count * element_bytes(request.type) * parts;
  return plans_->find(request.kind, bytes, has_root(request.kind) ? request.root : 0, scaled);
}

RunSpec Communicator::make_spec(const OperationRequest& request, Turn*& turn) {
  const std::size_t width = element_bytes(request.type);
  const PlanCache::Entry& entry = find_plan(request);

  RunSpec spec;
  spec.plan = entry.plan.get();
  if (reduces(request.kind)) {
    spec.kernels = &kernels::reduce_kernels(request.type, request.reduction.op, isa_);
  }
  spec.input = static_cast<const std::byte*>(request.input);
  spec.output = static_cast<std::byte*>(request.output);
  spec.slicing = Slicing(partition_for(request.kind, request.count, width, spec.plan->chunk_count),
                         slice_bytes_, static_cast<std::uint32_t>(config_.slots));
  spec.scaling = request.reduction.scaling;
  spec.divisor = request.reduction.divisor;
  spec.rank = rank_;

  const auto peer = static_cast<std::size_t>(request.root);
  turn = request.kind == Collective::kSend   ? &send_turns_[peer]
         : request.kind == Collective::kRecv ? &recv_turns_[peer]
                                             : &collective_turn_;
  spec.descriptor.sequence = static_cast<std::uint32_t>(turn->taken);
  spec.descriptor.kind = request.kind;
  spec.descriptor.type = request.type;
  spec.descriptor.reduction = reduces(request.kind) ? request.reduction.name : Reduction::kNone;
  if (turn == &collective_turn_) {
    spec.descriptor.algorithm = static_cast<std::uint8_t>(entry.algorithm - algorithms().data());
    spec.descriptor.root = has_root(request.kind) ? request.root : 0;
  }
  spec.descriptor.count = request.count;
  return spec;
}

void Communicator::wait_idle() {
  drive_until(device_, [this] { return in_flight_.load(std::memory_order_acquire) == 0; },
              {Deadline::never(), &aborted_});
}

void Communicator::abort() noexcept {
  aborted_.store(true, std::memory_order_release);
  const bool busy = in_flight_.load(std::memory_order_acquire) > 0;
  // Peers that wait for our part would wait for ever; those that do not need us must not be
  // disturbed.
  fail(Error(ErrorCode::kRemote, format("rank %d aborted the communicator", rank_)), busy);
  // What runs now sees the failure and ends; what is queued behind a user's function ends when its
  // turn comes, without touching the user's buffers, and need not be waited for.
  drive_until(device_, [this] { return in_flight_.load(std::memory_order_acquire) == 0; },
              {Deadline::after_ms(kAbortWait_ms), nullptr});
  leave();
}

void Communicator::leave() noexcept {
  left_.store(true, std::memory_order_release);
  if (!joined()) return;
  membership_->leave();
  device_.quiesce_doorbells();
}

// None once failed: what is still queued then ends when its turn comes, perhaps after the others
// have let go of this communicator, so nobody may sleep on a bell that goes with it.
std::span<Doorbell* const> Communicator::doorbells() {
  if (loss_ || failed_.load(std::memory_order_acquire)) return {};
  return doorbells_;
}

std::optional<Error> Communicator::failure() {
  if (!failed_.load(std::memory_order_acquire) && joined()) {
    if (const std::optional<Error> news = membership_->poll()) fail(*news, false);
  }
  const std::lock_guard lock(failure_mutex_);
  return failure_;
}

void Communicator::throw_if_failed() {
  if (!failed_.load(std::memory_order_acquire)) return;
  const std::lock_guard lock(failure_mutex_);
  throw Error(*failure_);
}

void Communicator::check_peers(const GroupRun& run) {
  failure();
  throw_if_failed();
  const ScheduleRun* waiting = run.waiting_run();
  if (waiting == nullptr) return;
  const int late = waiting->waits_for();
  const bool has_left = late != kNobody && membership_->has_left(late);
  stall_watch_->check_left(*waiting, has_left, polls_, moves_);
  if (stall_watch_->is_due(moves_, now_ns())) look_for_disagreement(*waiting);
}

// Nothing moved for long. Ranks that run different operations wait for each other on different
// links, and the opening of what a peer runs instead lies unread on one of ours.
void Communicator::look_for_disagreement(const ScheduleRun& waiting) {
  const std::lock_guard lock(issue_mutex_);
  const Collective kind = waiting.spec().descriptor.kind;
  const bool in_collective = kind != Collective::kSend && kind != Collective::kRecv;
  for (int peer = 0; in_collective && peer < nranks_; ++peer) {
    stall_watch_->check_opening(waiting, peer);
  }
  // What other peers sent ahead proves nothing: only the one that we wait for could be waiting for
  // us.
  const int late = waiting.waits_for();
  if (late != kNobody) {
    if (collective_turn_.idle()) stall_watch_->check_unread(waiting, late, Channel::kCollective);
    if (recv_turns_[static_cast<std::size_t>(late)].idle()) {
      stall_watch_->check_unread(waiting, late, Channel::kPointToPoint);
    }
  }
  stall_watch_->tell(waiting);
}

void Communicator::poll_transports() {
  for (Transport* transport : polled_) transport->poll();
}

bool Communicator::run_failed(const std::exception& error) noexcept {
  if (failed_.load(std::memory_order_acquire)) return true;
  const auto* known = dynamic_cast<const Error*>(&error);
  if (known != nullptr && known->code() == ErrorCode::kRemote && joined()) {
    if (!loss_) loss_ = {*known, Deadline::after_ms(kNewsWait_ms)};
    return false;
  }
  fail(known != nullptr ? *known : Error(ErrorCode::kInternal, error.what()), true);
  return true;
}

// A connection may be lost because a third rank died, and the other end heard of it and gave up
// before we did. Who it was the control plane knows, or will know in a moment.
bool Communicator::may_go_on() {
  throw_if_failed();
  if (!loss_) return true;
  if (const std::optional<Error> news = membership_->poll()) fail(*news, false);
  if (loss_->until.passed()) fail(loss_->error, true);
  throw_if_failed();
  return false;
}

void Communicator::fail(const Error& error, bool tell_peers) noexcept {
  {
    const std::lock_guard lock(failure_mutex_);
    if (failure_) return;
    failure_ = error;
  }
  failed_.store(true, std::memory_order_release);
  if (!aborted_.load(std::memory_order_acquire)) CATENARY_WARN(error.what());
  if (tell_peers && joined()) membership_->report(error);
  device_.doorbell().ring();
}

}  // namespace catenary
