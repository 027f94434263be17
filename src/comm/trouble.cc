// What a communicator does while nothing moves and when something is wrong: it hears news, looks
// for who has gone and for proof that ranks disagree, and fails.
#include "src/base/log.h"
#include "src/comm/communicator.h"
#include "src/device/process_life.h"

namespace catenary {
namespace {

// How often a program that asks all the time for the communicator's failure has links looked at.
constexpr std::int64_t kLookEvery_ns = 50'000'000;

}  // namespace

std::optional<Error> Communicator::failure() {
  hear_news();
  const std::int64_t now = now_ns();
  if (now >= next_look_ns_.load(std::memory_order_relaxed) && look_from_outside()) {
    next_look_ns_.store(now + kLookEvery_ns, std::memory_order_relaxed);
  }
  return known_failure();
}

std::optional<Error> Communicator::known_failure() {
  if (is_forked()) return std::nullopt;  // a thread of the parent may have held the mutex
  const std::lock_guard lock(failure_mutex_);
  return failure_;
}

void Communicator::hear_news() {
  if (is_forked()) return;  // the connection is the parent's
  if (!joined() || failed_.load(std::memory_order_acquire)) return;
  const std::optional<Error> news = membership_->poll();
  if (!news) return;
  // Who has died by now did no harm to what is over.
  if (parting_.load(std::memory_order_acquire) && news->code() == ErrorCode::kRemote) return;
  fail(*news, false);
}

void Communicator::throw_failure() {
  const std::lock_guard lock(failure_mutex_);
  throw Error(*failure_);
}

void Communicator::check_peers(const GroupRun& run) {
  hear_news();
  throw_if_failed();
  for (Transport* transport : polled_) transport->check_sent();
  if (const std::optional<Error> proof = judge_claims()) throw Error(*proof);
  const std::optional<GroupRun::Waiting> waiting = run.waiting();
  if (!waiting) return;
  const int late = waiting->on;
  const bool shares_memory = late != kNobody && links_->transport_of(late).shares_memory();
  const std::int64_t now = now_ns();
  stall_watch_->check_gone(run, *waiting, how_is_gone(late), moves_, shares_memory, now);
  const ScheduleRun* collective = run.waiting_collective();
  if (stall_watch_->is_proof_due(collective, moves_, now)) look_for_proof(collective);
  if (stall_watch_->is_suspicion_due(moves_, now)) look_for_suspicion(*waiting);
}

// Null: it is there, as far as we know. Where memory is shared nobody but the root tells of deaths.
const char* Communicator::how_is_gone(int rank) {
  if (rank == kNobody) return nullptr;
  if (membership_->has_left(rank)) return "has left the communicator";
  const bool has_ended = !membership_->has_root() && links_->transport_of(rank).has_ended(rank);
  return has_ended ? "has ended" : nullptr;
}

// Ranks that run different collectives wait for each other on different links, or not at all. What
// a peer runs instead may lie unread on one of ours; if not, the peer can know from what we claim.
void Communicator::look_for_proof(const ScheduleRun* collective) {
  if (collective != nullptr && stall_watch_->is_untold(collective->spec().descriptor)) {
    membership_->claim(std::as_bytes(std::span(&collective->spec().descriptor, 1)));
  }
  if (const std::optional<Error> proof = judge_links(collective)) throw Error(*proof);
}

std::optional<Error> Communicator::judge_claims() {
  for (const ClaimMessage& each : membership_->take_claims()) ledger_.hear(each.rank, each.claim);
  return ledger_.judge_heard();
}

// What lies on the links that no collective reads from now: all of them if none is under way, and
// none if there is another one than that given.
std::optional<Error> Communicator::judge_links(const ScheduleRun* collective) {
  const std::lock_guard lock(issue_lock_);
  if (collective == nullptr && !collective_turn_.idle()) return std::nullopt;
  std::vector<bool> in_use(static_cast<std::size_t>(nranks_));
  if (collective != nullptr) in_use = collective->opened_peers(nranks_);
  in_use[static_cast<std::size_t>(rank_)] = true;
  for (int peer = 0; peer < nranks_; ++peer) {
    if (in_use[static_cast<std::size_t>(peer)]) continue;
    if (std::optional<Error> proof = stall_watch_->judge_link(peer, ledger_)) return proof;
  }
  return std::nullopt;
}

// For a thread that does not drive. False: somebody else does, and nothing was looked at. Who looks
// after this sees the proof that it found as a failure, of which the others have been told.
bool Communicator::look_from_outside() {
  const bool is_over = !joined() || failed_.load(std::memory_order_acquire) ||
                       left_.load(std::memory_order_acquire) || is_forked();
  if (is_over) return true;
  const auto look = [this]() noexcept {
    if (loss_) return true;  // links are not touched while it is open who died
    try {
      // What has come may be what somebody sleeps for, who would not be told any more.
      if (poll_transports()) device_.doorbell().ring();
      std::optional<Error> proof = judge_claims();
      if (!proof) proof = judge_links(nullptr);
      if (proof) fail(*proof, true);
    } catch (const std::exception& error) {  // of a transport, or of a link
      fail(as_error(error), true);
    }
    return true;
  };
  return device_.executor().try_hold(Condition(look));
}

// With the drive lock. Whether nothing of ours is left in any of them, or they have failed.
bool Communicator::drain_transports() noexcept {
  try {
    bool done = true;
    for (Transport* transport : polled_) {
      transport->poll();
      done = transport->try_drain() && done;
    }
    return done;
  } catch (const std::exception& error) {
    fail(as_error(error), true);
    return true;
  }
}

// Nothing moved for long. What lies unread from the rank that we wait for, on links for which we
// have issued nothing, is what it waits in. What other peers sent ahead proves nothing: only the
// one that we wait for could be waiting for us.
void Communicator::look_for_suspicion(const GroupRun::Waiting& waiting) {
  const std::lock_guard lock(issue_lock_);
  const int late = waiting.on;
  // Who has not taken what we lent may be doing anything else first.
  if (late != kNobody && !waiting.only_to_be_taken) {
    if (collective_turn_.idle()) stall_watch_->check_unread(waiting, late, Channel::kCollective);
    // Who waits in a send may be about to receive: both may send first.
    const bool sends = waiting.in.kind == Collective::kSend;
    if (!sends && messages_->recv_end(late).turn.idle()) {
      stall_watch_->check_unread(waiting, late, Channel::kPointToPoint);
    }
  }
  stall_watch_->tell(waiting, moves_);
}

bool Communicator::poll_transports() {
  bool moved = false;
  for (Transport* transport : polled_) moved = transport->poll() || moved;
  return moved;
}

bool Communicator::run_failed(const std::exception& error) noexcept {
  if (failed_.load(std::memory_order_acquire)) return true;
  const auto* known = dynamic_cast<const Error*>(&error);
  if (known != nullptr && known->code() == ErrorCode::kRemote && joined()) {
    if (!loss_) loss_.emplace(*known, *membership_);
    in_trouble_.store(true, std::memory_order_release);
    return false;
  }
  fail(first_of(error), true);
  return true;
}

// What ranks disagree about may be over for us, and show only when the next collective reads what
// was left of it on a link.
Error Communicator::first_of(const std::exception& error) const {
  const auto* shown = dynamic_cast<const Disagreement*>(&error);
  if (shown != nullptr && !shown->is_about_ours) {
    if (const auto proof = ledger_.judge(shown->peer, shown->theirs)) return *proof;
  }
  return as_error(error);
}

bool Communicator::may_go_on_in_trouble() {
  throw_if_failed();
  if (!loss_) return true;
  hear_news();
  if (const std::optional<Error> verdict = loss_->verdict()) fail(*verdict, true);
  throw_if_failed();
  return false;
}

void Communicator::fail(const Error& error, bool tell_peers) noexcept {
  if (failed_.load(std::memory_order_acquire)) return;
  // Before anybody sees it here, and leaves.
  if (tell_peers && joined()) membership_->report(error);
  {
    const std::lock_guard lock(failure_mutex_);
    if (failure_) return;
    // Whoever sees the failure and asks for the last error gets this one.
    failure_ = error;
    if (!aborted_.load(std::memory_order_acquire)) {
      CATENARY_WARN(error.what());
      failure_->note_told();
    }
  }
  failed_.store(true, std::memory_order_release);
  in_trouble_.store(true, std::memory_order_release);
  device_.doorbell().ring();
}

}  // namespace catenary
