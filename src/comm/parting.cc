// How a communicator ends: in peace, after a last look at whether the ranks agree, or by an abort.
#include <algorithm>
#include <limits>
#include <span>

#include "src/base/log.h"
#include "src/comm/communicator.h"
#include "src/device/process_life.h"

namespace catenary {
namespace {

constexpr std::int64_t kCopiersWait_ms = 10'000;
constexpr std::int64_t kAbortWait_ms = 100;
constexpr std::int64_t kWritersWait_ms = 6000;  // somewhat longer than runs wait for them
constexpr std::int64_t kDrainWait_ms = 2000;
// How long to wait for word of the others without a look at what they do meanwhile: transports that
// are polled wait for us.
constexpr std::int64_t kLongSlice_ms = 20;
constexpr std::int64_t kShortSlice_ms = 1;
// Once all are known to be there, they have this long to tell what they found.
constexpr int kTellingWait_ms = 500;

}  // namespace

std::optional<Error> Communicator::part(std::int64_t patience_ms) {
  wait_idle();
  std::optional<Error> disagreement = look_back();
  if (!disagreement && patience_ms > 0) {
    disagreement = compare_with_all({Deadline::after_ms(patience_ms), &aborted_});
  }
  drain();
  leave();
  return disagreement;
}

void Communicator::wait_idle() {
  drive_until(device_, [this] { return idle(); }, {Deadline::never(), &aborted_});
}

// With nothing under way: the disagreement of ranks that has become the communicator's failure by
// now, if one has. Who has left or died by now did no harm to what is over.
std::optional<Error> Communicator::look_back() {
  hear_news();
  drive_until(device_, [this] { return look_from_outside(); }, {Deadline::never(), &aborted_});
  const std::lock_guard lock(failure_mutex_);
  if (failure_ && failure_->code() == ErrorCode::kInvalidUsage) return failure_;
  return std::nullopt;
}

// Once all have settled the first step, nothing of any collective is still to come but what is on
// its way through a network, and all have heard which one was another's last if it was not theirs.
// Who finds proof then tells the others, and they have heard it once all have settled the second
// step.
std::optional<Error> Communicator::compare_with_all(const Wait& wait) {
  if (nranks_ == 1 || !joined() || failed_.load(std::memory_order_acquire) || is_forked()) {
    return std::nullopt;
  }
  std::optional<Descriptor> last;
  const auto close = [&] {
    if (aborted_.load(std::memory_order_acquire) || !idle()) return true;
    last = ledger_.close();
    parting_.store(true, std::memory_order_release);
    return true;
  };
  drive_until(
      device_, [&] { return device_.executor().try_hold(Condition(close)); }, wait);
  if (!parting_.load(std::memory_order_acquire)) return std::nullopt;
  if (last) membership_->claim(std::as_bytes(std::span(&*last, 1)));

  membership_->settle(1);
  const bool all_came = wait_for_settled(1, wait);
  std::optional<Error> disagreement = look_back();
  if (disagreement || !all_came) return disagreement;

  membership_->settle(2);
  const int left_ms = wait.deadline.remaining_ms(std::numeric_limits<int>::max());
  wait_for_settled(2, {Deadline::after_ms(std::max(left_ms, kTellingWait_ms)), wait.cancelled});
  return look_back();
}

// False: some did not, or there was a failure.
bool Communicator::wait_for_settled(std::uint32_t step, const Wait& wait) {
  const std::int64_t slice_ms = polled_.empty() ? kLongSlice_ms : kShortSlice_ms;
  while (!failed_.load(std::memory_order_acquire)) {
    const int left_ms = wait.deadline.remaining_ms(static_cast<int>(slice_ms));
    if (membership_->wait_for_settled(step, {Deadline::after_ms(left_ms), wait.cancelled})) {
      return true;
    }
    if (wait.is_cancelled() || wait.deadline.passed()) return false;
    look_from_outside();
  }
  return false;
}

// Waits, a moment at most, until what network libraries still hold of ours has arrived: it would be
// lost when the transports go. With nothing under way. Peers that neither leave nor use the
// communicator do not answer, and are not waited for for long.
void Communicator::drain() {
  const auto drained = [this] {
    const bool is_over = !joined() || failed_.load(std::memory_order_acquire) ||
                         left_.load(std::memory_order_acquire) || is_forked();
    if (is_over) return true;
    const auto look = [this] {
      return drain_transports() || loss_ || membership_->poll().has_value();
    };
    return device_.executor().try_hold(Condition(look));
  };
  if (!joined() || polled_.empty()) return;
  drive_until(device_, drained, {Deadline::after_ms(kDrainWait_ms), &aborted_});
}

void Communicator::abort() noexcept {
  aborted_.store(true, std::memory_order_release);
  const bool busy = !idle();
  // Peers that wait for our part would wait for ever; those that do not need us must not be
  // disturbed.
  fail(Error(ErrorCode::kRemote, format("rank %d aborted the communicator", rank_)), busy);
  end_in_flight();
  leave();
}

// By the user, who wants no more of what is made of this either: see split().
void Communicator::abandon() noexcept {
  abandoned_.store(true, std::memory_order_release);
  abort();
}

// Of a communicator that has failed: what runs now sees that and ends; what is queued behind a
// user's function ends when its turn comes, without touching the user's buffers, and need not be
// waited for. But what has begun peers may be writing to, until it ends.
//
// Whoever polls just now may have looked before we failed, and be in the middle of a copy from or
// to the user's buffers, without a core for as long as the system likes. Once the drive lock was
// ours, nobody is.
void Communicator::end_in_flight() noexcept {
  const auto nobody_copies = [this] {
    constexpr auto yes = [] { return true; };
    return idle() || device_.executor().try_hold(Condition(yes));
  };
  if (!drive_until(device_, nobody_copies, {Deadline::after_ms(kCopiersWait_ms), nullptr})) {
    log_notice(device_.ordinal(),
               format("rank %d is aborted, but for %lld s other threads of this process had its "
                      "device; one may be in the middle of an operation, and still read and write "
                      "the buffers of that",
                      rank_, static_cast<long long>(kCopiersWait_ms / 1000)));
  }
  drive_until(device_, [this] { return idle(); }, {Deadline::after_ms(kAbortWait_ms), nullptr});
  const auto is_nobodys = [this] { return open_to_writers_.load(std::memory_order_acquire) == 0; };
  drive_until(device_, is_nobodys, {Deadline::after_ms(kWritersWait_ms), nullptr});
}

// Says goodbye to the other ranks, and makes sure that no thread sleeps on what goes with this. Not
// from a task.
void Communicator::leave() noexcept {
  left_.store(true, std::memory_order_release);
  if (!joined()) return;
  membership_->leave();
  device_.quiesce_doorbells();
}

}  // namespace catenary
