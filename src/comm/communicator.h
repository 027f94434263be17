// Communicator: one rank of a group of ranks, and what it has under way.
//
// Threads: submit() and the queries from any thread, but the calls of all ranks must agree on one
// order; abort() and failure() from any thread at any time, also while others wait. Waiting: join()
// waits for all ranks, part() for this rank's operations and, if told so, for other ranks that
// part; submit() does not wait. Owner: the handle of the C boundary; what outlives that in a
// stream, after an abort, keeps it. Failure: calls throw Error; what fails later becomes the one
// failure of the communicator, which every later call throws.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/base/biased_lock.h"
#include "src/base/config.h"
#include "src/base/error.h"
#include "src/bootstrap/membership.h"
#include "src/bootstrap/unique_id.h"
#include "src/comm/ledger.h"
#include "src/comm/loss.h"
#include "src/comm/message_issuer.h"
#include "src/comm/operation_request.h"
#include "src/comm/plan_cache.h"
#include "src/comm/recipe.h"
#include "src/comm/reductions.h"
#include "src/comm/run_pool.h"
#include "src/comm/stall_watch.h"
#include "src/comm/store_choice.h"
#include "src/device/device.h"
#include "src/device/event.h"
#include "src/engine/group_run.h"
#include "src/engine/short_run.h"
#include "src/transport/link_table.h"
#include "src/transport/shared_heap.h"

namespace catenary {

using TransportFactory = std::function<Transports(const TransportContext&)>;

struct CommunicatorOptions {
  bool blocking = true;
  std::string name;
};

class Communicator final : public RunOwner {
 public:
  static constexpr int kMostRanks = kMaxRanks;

  static std::shared_ptr<Communicator> make(int rank, int nranks, Device& device,
                                            const CommunicatorOptions& options,
                                            const Config& config);

  // Meets the other ranks and makes the links' foundations. Once. What it throws also becomes the
  // communicator's failure.
  // `pointless`: what else ends the wait.
  void join(const UniqueId& id, const TransportFactory& transports,
            const std::function<bool()>* pointless = nullptr);

  // Throws if these operations of one group cannot go together.
  void check(const Requests& requests);
  // Submits operations that check() let pass, of one group or a single one, on their streams.
  // With `after`, they run beside their streams, which must be made to wait for that event: so that
  // they do not wait for other communicators' operations of their group, which need not come in the
  // same order on all ranks.
  void submit(const Requests& requests, Event* after = nullptr);
  // Makes the streams of requests that were submitted with `after` wait for it. If there is no
  // memory for that, the communicator fails and what is under way ends now.
  void join_streams(const Requests& requests, const Event& after) noexcept;
  // How long these operations of one group would take, that check() let pass. Does nothing.
  double estimate_ns(const Requests& requests);
  // Waits until nothing of this communicator is under way, and says goodbye to the other ranks;
  // nothing is submitted afterwards. The disagreement of ranks that shows now at the latest, if one
  // does. With patience it also waits so long for the others to part, so that all of them are told.
  std::optional<Error> part(std::int64_t patience_ms);
  // Ends what is under way. Local.
  void abort() noexcept;
  // The same by the user, and for what is just being made of this as well.
  void abandon() noexcept;
  bool is_abandoned() const noexcept { return abandoned_.load(std::memory_order_acquire); }

  // Throws the communicator's failure, if it has one.
  void throw_if_failed() {
    if (failed_.load(std::memory_order_acquire)) throw_failure();
  }
  // The communicator's failure, if it has one; looks for news of peers, and now and then for proof
  // that they disagree.
  std::optional<Error> failure();
  // The same without looking.
  std::optional<Error> known_failure();

  // All ranks give some bytes, all get everybody's. Waits.
  std::vector<Bytes> exchange(ByteView mine);

  // What it joined with.
  const UniqueId& id() const { return id_; }
  int rank() const { return rank_; }
  int nranks() const { return nranks_; }
  Device& device() const { return device_; }
  Reductions& reductions() { return reductions_; }
  const CommunicatorOptions& options() const { return options_; }
  // What the caller's collectives from here on must have in common beside what they say.
  std::uint32_t mark() const { return mark_.load(std::memory_order_relaxed); }
  void set_mark(std::uint32_t mark) { mark_.store(mark, std::memory_order_relaxed); }
  bool joined() const { return joined_.load(std::memory_order_acquire); }
  bool ready_or_failed() const { return joined() || failed_.load(std::memory_order_acquire); }

  // RunOwner.
  void check_peers(const GroupRun& run) override;
  void begins(const Descriptor& descriptor) noexcept override { ledger_.begin(descriptor); }
  bool poll_transports() override;
  bool has_time() const noexcept override { return device_.executor().is_waited_for(); }
  Task::Wakers wakers() override;
  bool run_failed(const std::exception& error) noexcept override;
  void run_over(GroupRun& run) noexcept override;
  void short_run_over() noexcept override { count_over(); }

 private:
  // communicator.cc: beginning, and what it costs.
  Communicator(int rank, int nranks, Device& device, const CommunicatorOptions& options,
               const Config& config);
  ~Communicator();
  static void let_go(Communicator* communicator) noexcept;
  void meet(const UniqueId& id, const TransportFactory& transports,
            const std::function<bool()>* pointless);
  Wait wait_until_timeout() const;
  double estimate_messages_ns(std::span<const MessageRequest> messages);
  bool idle() const noexcept;
  void count_over() noexcept;

  // trouble.cc: failures, and what is looked at when nothing moves.
  void hear_news();
  const char* how_is_gone(int rank);
  void look_for_proof(const ScheduleRun* collective);
  std::optional<Error> judge_claims();
  std::optional<Error> judge_links(const ScheduleRun* collective);
  bool look_from_outside();
  bool drain_transports() noexcept;
  void look_for_suspicion(const GroupRun::Waiting& waiting);
  bool may_go_on_in_trouble() override;
  Error first_of(const std::exception& error) const;
  void fail(const Error& error, bool tell_peers) noexcept;
  [[noreturn]] void throw_failure();

  // submission.cc: runs of requests, and how they get onto streams.
  static PlanCache::Question plan_question(const OperationRequest& request);
  bool lies_otherwise(const Recipe& recipe, const OperationRequest& request);
  Recipe& recipe_for(const OperationRequest& request);
  Recipe& look_up(RecipeBook& book, const OperationRequest& request);
  void fill_recipe(Recipe& recipe, const OperationRequest& request);
  void set_sharing(Recipe& recipe, RunSpec& spec, const OperationRequest& request,
                   std::size_t request_bytes, bool takes_nothing_back);
  void choose_stores(Recipe& recipe, const OperationRequest& request);
  void add_operation(const OperationRequest& request, GroupRun& run, std::size_t steps_done);
  std::unique_ptr<GroupRun> make_run(const Requests& requests, std::size_t steps_done);
  TaskPtr task_for(const Requests& requests, std::size_t steps_done);
  void submit_run(const Requests& requests, Event* after);
  void put(Stream& stream, std::unique_ptr<GroupRun> run, Extent extent);
  void enqueue_on_all(const Requests& requests, std::unique_ptr<GroupRun> run);
  void enqueue_aside(const Requests& requests, std::unique_ptr<GroupRun> run, Event& after);

  // at_once.cc: what begins without a run.
  template <typename Kind>
  class AtOnce;
  class CollectiveAtOnce;
  template <typename End>
  class ShortMessageEnd;
  template <typename End>
  class MessageAtOnce;
  class ExchangeAtOnce;
  bool try_at_once(const Requests& requests);
  bool try_collective(const Requests& requests);
  bool try_message(const Requests& requests);
  bool try_exchange(const Requests& requests);
  bool is_short(const MessageRequest& message) const;
  bool would_lend(const MessageRequest& send) const;
  bool may_be_lent(const void* memory, std::size_t bytes) const;
  bool runs_ahead();
  MessageIssuer::SendEnd* end_for_short(const MessageRequest& send);

  // parting.cc: the end.
  std::optional<Error> look_back();
  std::optional<Error> compare_with_all(const Wait& wait);
  bool wait_for_settled(std::uint32_t step, const Wait& wait);
  void wait_idle();
  void drain();
  void leave() noexcept;
  void end_in_flight() noexcept;

  // Constant after construction.
  const int rank_;
  const int nranks_;
  Device& device_;
  const CommunicatorOptions options_;
  const Config& config_;
  Reductions reductions_;
  const kernels::Isa isa_;
  const std::size_t slice_bytes_;
  const std::size_t least_loan_;
  const std::size_t least_staged_;
  const std::size_t least_in_place_;  // operations of fewer bytes lend nothing in place

  // Constant after join().
  UniqueId id_{};
  std::unique_ptr<Membership> membership_;
  std::unique_ptr<LinkTable> links_;
  std::vector<Transport*> polled_;        // transports whose links nobody rings for
  std::vector<Doorbell*> doorbells_;      // of the others
  SharedHeap heap_;                       // of ours, what peers can map
  std::size_t least_fetched_ = SIZE_MAX;  // peers may have the kernel copy so much, mapped or not
  std::atomic<bool> joined_{false};

  // Any thread.
  std::atomic<bool> failed_{false};
  std::atomic<bool> aborted_{false};
  std::atomic<bool> abandoned_{false};
  std::atomic<bool> left_{false};
  std::atomic<bool> parting_{false};  // nothing is under way, nor will be
  std::atomic<std::uint32_t> mark_{0};
  std::atomic<std::int64_t> next_look_ns_{0};  // of failure(), for proof
  std::mutex failure_mutex_;
  std::optional<Error> failure_;  // guarded by failure_mutex_, set once

  // Who drives, or holds the drive lock.
  std::array<ScratchMemory, kMostLanes> scratch_;
  Counter runs_over_{0};               // read by any thread
  std::vector<int> wait_descriptors_;  // that a sleep was told of last
  bool orphaned_ = false;              // whoever ends the last run deletes this
  std::optional<StallWatch> stall_watch_;
  Ledger ledger_;
  std::optional<Loss> loss_;

  // Guarded by issue_lock_. It is held from taking turns until the streams know of them. Who holds
  // the drive lock may wait for it, since its holder never waits for anything; but not from a poll,
  // which may be its holder's own.
  BiasedLock issue_lock_;
  Counter runs_begun_{0};  // read by any thread
  std::unique_ptr<PlanCache> plans_;
  std::array<RecipeBook, kCollectiveCount> recipes_;
  std::uint64_t last_stamp_ = 0;
  Turn collective_turn_;
  StoreChoice stores_;
  std::optional<MessageIssuer> messages_;  // from join() on
  // For runs_ahead(): how often users of the device had waited, and after how many operations.
  std::uint64_t returns_seen_ = 0;
  int waited_in_a_row_ = 0;

  RunPool runs_;
  // Begun under the issue lock and the drive lock, then used by who drives.
  ShortRun short_run_{*this};
};

}  // namespace catenary
