#include "src/comm/communicator.h"

#include <sched.h>

#include <algorithm>
#include <cstring>

#include "src/base/log.h"
#include "src/base/rounding.h"
#include "src/base/size_literals.h"
#include "src/comm/rank_facts.h"
#include "src/device/announced_buffer.h"
#include "src/device/memory.h"
#include "src/device/process_life.h"
#include "src/topology/machine.h"
#include "src/transport/process_memory.h"

namespace catenary {
namespace {

// Bytes that the opening of a message needs beside its data.
constexpr std::size_t kSlotOverhead = kPaddedDescriptorBytes;

// What a card may be given: blocks of our own, and what users have announced.
std::optional<UserBlock> find_user_block(const std::byte* address) {
  if (const auto block = Memory::process().find(address)) {
    return UserBlock{{block->base, block->bytes}, block->number};
  }
  constexpr std::uint64_t kAnnounced = std::uint64_t{1} << 63;
  const auto announced = AnnouncedBuffer::find(address);
  if (!announced) return std::nullopt;
  return UserBlock{announced->memory, announced->number | kAnnounced};
}

// What is written again before both cores have let go of it is slow to write, so a belt is nearly
// as long as what they keep for themselves; and those of both directions stay in what they share.
// Where cores keep more than that, what they let go of is far away, and a belt is better at hand.
constexpr std::size_t kLargeCache = 2_MB;
std::size_t belt_bytes(const Config& config) {
  if (config.belt_bytes >= 0) return static_cast<std::size_t>(config.belt_bytes);
  const std::size_t own = second_level_cache_bytes();
  const std::size_t wanted = own < kLargeCache ? own + own / 4 * 3 : own / 2;
  return std::min(wanted, last_level_cache_bytes() / 4);
}

// Shorter messages are better copied twice than once by a system call.
constexpr std::size_t kLeastFetched = 32_KB;

std::size_t least_fetched(const Config& config) {
  if (config.least_fetched == 0) return SIZE_MAX;
  if (config.least_fetched > 0) return static_cast<std::size_t>(config.least_fetched);
  return kLeastFetched;
}

std::size_t least_staged(const Config& config) {
  if (config.least_staged == 0) return SIZE_MAX;
  if (config.least_staged < 0) return RunSpec::kAsFannedOut;
  return std::max(kLeastLoan, static_cast<std::size_t>(config.least_staged));
}

TransportContext transport_context(const Membership& membership, std::size_t slice_bytes,
                                   Device& device, const Config& config) {
  TransportContext context;
  context.rank = membership.rank();
  context.nranks = membership.nranks();
  context.key = membership.derive_key("transport");
  context.slot_bytes = slice_bytes + kSlotOverhead;
  context.slots = static_cast<std::uint32_t>(config.slots);
  context.belt_bytes = belt_bytes(config);
  context.config = &config;
  context.find_block = find_user_block;
  context.wake = [&device] { device.doorbell().ring(); };
  if (config.least_loan == 0) return context;
  if (const Heap* heap = Memory::process().heap(); heap != nullptr) {
    context.heap = {heap->base(), heap->bytes(), heap->fd()};
  }
  context.least_fetched = least_fetched(config);
  if (config.least_fetched < 0) context.where_they_pay = KernelCopies{};
  return context;
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
      least_loan_(config.least_loan == 0
                      ? SIZE_MAX
                      : std::max(kLeastLoan, static_cast<std::size_t>(config.least_loan))),
      least_staged_(least_staged(config)),
      least_in_place_(static_cast<std::size_t>(config.least_lent_in_place)),
      ledger_(rank),
      stores_(nranks, last_level_cache_bytes(), heap_, device.executor()) {}

Communicator::~Communicator() = default;

std::shared_ptr<Communicator> Communicator::make(int rank, int nranks, Device& device,
                                                 const CommunicatorOptions& options,
                                                 const Config& config) {
  return {new Communicator(rank, nranks, device, options, config), let_go};
}

// Nobody can call it any more. A forked child has not got the threads that would end its runs, and
// perhaps a lock that one of them held.
void Communicator::let_go(Communicator* communicator) noexcept {
  bool was_idle = false;
  const auto leave_to_driver = [&] {
    was_idle = communicator->idle();
    return communicator->orphaned_ = true;
  };
  Executor& executor = communicator->device_.executor();
  while (!executor.try_hold(Condition(leave_to_driver))) {
    if (is_forked()) return;
    ::sched_yield();
  }
  if (was_idle) delete communicator;
}

bool Communicator::idle() const noexcept {
  const std::uint64_t over = runs_over_.load(std::memory_order_acquire);
  return over == runs_begun_.load(std::memory_order_acquire);
}

// A catch of its own, because the thread that polls for the outcome of a join in the background is
// not the one in which it fails.
void Communicator::join(const UniqueId& id, const TransportFactory& transports,
                        const std::function<bool()>* pointless) {
  id_ = id;
  try {
    meet(id, transports, pointless);
  } catch (const std::exception& error) {
    fail(as_error(error), false);
    throw_failure();
  }
}

void Communicator::meet(const UniqueId& id, const TransportFactory& transports,
                        const std::function<bool()>* pointless) {
  Wait wait = wait_until_timeout();
  wait.pointless = pointless;
  log_info(
      Subsystem::kInit, device_.ordinal(),
      format("[Rank %d] ncclCommInitRankConfig comm %p rank %d nranks %d cudaDev %d - Init START",
             rank_, static_cast<void*>(this), rank_, nranks_, device_.ordinal()));
  auto membership = std::make_unique<Membership>(id, rank_, nranks_, wait, config_);
  const TransportContext context = transport_context(*membership, slice_bytes_, device_, config_);
  heap_ = context.heap;
  least_fetched_ = context.least_fetched;
  auto links = std::make_unique<LinkTable>(transports(context), *membership, wait);
  const Cut longest{slice_bytes_, static_cast<std::uint32_t>(config_.slots)};
  const AgreedFacts facts = agree_on_facts(*membership, *links, longest, config_, wait);
  device_.note_ranks(facts.crowd.ranks, facts.crowd.cores);
  log_info(Subsystem::kInit, device_.ordinal(),
           format("[Rank %d] %d ranks in boxes of %d; %d of them share %d core%s here", rank_,
                  nranks_, facts.machine.box, facts.crowd.ranks, facts.crowd.cores,
                  facts.crowd.cores == 1 ? "" : "s"));
  if (rank_ == 0 && nranks_ > 1 && config_.box > 0 && config_.box != facts.machine.box) {
    log_notice(device_.ordinal(),
               format("CATENARY_BOX=%lld has no effect: it does not divide %d ranks, or is not the "
                      "same on all of them; boxes have %d",
                      static_cast<long long>(config_.box), nranks_, facts.machine.box));
  }

  plans_ = std::make_unique<PlanCache>(
      rank_, nranks_, *links, facts, longest,
      AlgorithmRules(config_.algorithm, config_.nccl_algo, config_.nccl_proto));
  for (Transport* transport : links->in_use()) {
    transport->note_crowding(device_.executor().crowded());
    if (transport->doorbell() == nullptr) {
      polled_.push_back(transport);
    } else {
      doorbells_.push_back(transport->doorbell());
    }
  }
  // Where others are told of by descriptors, no bell that only we ring may keep us from those.
  if (!polled_.empty() && !links->joins_others_with_bells()) doorbells_.clear();
  messages_.emplace(MessageTerms{.rank = rank_,
                                 .nranks = nranks_,
                                 .slots = static_cast<std::size_t>(config_.slots),
                                 .least_loan = least_loan_},
                    *links, *plans_, stores_);
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
void Communicator::check(const Requests& requests) {
  throw_if_failed();
  int sends = 0;
  int receives = 0;
  for (const MessageRequest& message : requests.messages) {
    if (message.peer == rank_) ++(message.sends ? sends : receives);
  }
  if (sends == receives) return;
  throw_error(ErrorCode::kInvalidUsage,
              "Trying to %s without a matching %s in the same group (rank %d)",
              sends > receives ? "send to self" : "recv from self",
              sends > receives ? "recv" : "send", rank_);
}

void Communicator::join_streams(const Requests& requests, const Event& after) noexcept {
  try {
    requests.for_each_stream([&](Stream& stream) { stream.wait_event(after); });
  } catch (const std::exception& error) {
    fail(as_error(error), true);
    end_in_flight();
  }
}

void Communicator::run_over(GroupRun& run) noexcept {
  runs_.give_back(std::unique_ptr<GroupRun>(&run));
  count_over();
}

void Communicator::count_over() noexcept {
  // Before anyone can see that this is idle, and let go of it.
  const bool is_last = orphaned_ && runs_over_.load(std::memory_order_relaxed) + 1 ==
                                        runs_begun_.load(std::memory_order_acquire);
  count_up(runs_over_);
  if (is_last) delete this;
}

// Collectives go one after the other.
double Communicator::estimate_ns(const Requests& requests) {
  throw_if_failed();
  const std::lock_guard lock(issue_lock_);
  double total = 0;
  for (const OperationRequest& request : requests.operations) {
    PlanCache::Question asked = plan_question(request);
    asked.count = request.count;
    total += plans_->estimate_ns(asked);
  }
  return total + estimate_messages_ns(requests.messages);
}

// Sends and receives go side by side, but one rank moves them: both directions at a time at best,
// and of one direction all wait at once for what is as long on its way as nothing would be.
// And where all ranks send and receive so much, they share memory and cores as in an AlltoAll: that
// takes as long as its share of one whose parts are as long as these on average.
double Communicator::estimate_messages_ns(std::span<const MessageRequest> messages) {
  struct Direction {
    Collective kind;
    double ns = 0;
    std::size_t bytes = 0;
    std::size_t count = 0;
  };
  Direction sends{Collective::kSend};
  Direction receives{Collective::kRecv};
  const auto price = [this](Collective kind, std::size_t bytes, int root) {
    return plans_->estimate_ns(
        {.kind = kind, .count = bytes, .element_bytes = 1, .root = root, .scaled = false});
  };
  for (const MessageRequest& message : messages) {
    Direction& direction = message.sends ? sends : receives;
    const std::size_t bytes = message.count * element_bytes(message.type);
    const double ns = price(direction.kind, bytes, message.peer);
    const bool is_first = direction.count == 0;
    direction.ns += is_first ? ns : std::max(ns - price(direction.kind, 0, message.peer), 0.0);
    direction.bytes += bytes;
    direction.count += 1;
  }
  const double side_by_side = std::max(sends.ns, receives.ns);
  if (sends.count == 0 || receives.count == 0) return side_by_side;
  const Direction& larger = sends.bytes > receives.bytes ? sends : receives;
  const double exchange_ns = price(Collective::kAllToAll, larger.bytes / larger.count, 0);
  return std::max(side_by_side, exchange_ns * static_cast<double>(larger.count) / nranks_);
}

// None once failed: what is still queued then ends when its turn comes, perhaps after the others
// have let go of this communicator, so nobody may sleep on a bell that goes with it.
Task::Wakers Communicator::wakers() {
  if (loss_ || failed_.load(std::memory_order_acquire)) return {};
  bool are_all = !doorbells_.empty() || !polled_.empty();
  wait_descriptors_.clear();
  for (Transport* transport : polled_) {
    const int descriptor = transport->wait_descriptor();
    if (descriptor >= 0) wait_descriptors_.push_back(descriptor);
    are_all = are_all && descriptor >= 0;
  }
  return {.bells = doorbells_, .descriptors = wait_descriptors_, .are_all = are_all};
}

}  // namespace catenary
