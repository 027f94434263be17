#include "src/device/sleep.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>

#include "src/base/clock.h"
#include "src/base/fence.h"

namespace catenary {

void Alarm::make() noexcept { descriptor_ = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC); }

bool Alarm::try_take() noexcept {
  if (is_taken_.exchange(true, std::memory_order_acquire)) return false;
  if (descriptor_ < 0) make();
  if (descriptor_ < 0) {
    give_back();
    return false;
  }
  eventfd_t rung = 0;
  ::eventfd_read(descriptor_, &rung);
  // Before the look that follows, as announcing is: who rings either is seen, or sees this.
  awaited_.exchange(descriptor_, std::memory_order_seq_cst);
  fence_after_rmw();
  return true;
}

void Alarm::give_back() noexcept {
  awaited_.store(-1, std::memory_order_relaxed);
  is_taken_.store(false, std::memory_order_release);
}

Sleep::~Sleep() {
  for (int i = 0; i < bell_count_; ++i) bells_[i]->retract();
  if (has_alarm_) alarm_.give_back();
}

void Sleep::add(const Task::Wakers& wakers) noexcept {
  if (!wakers.are_all) is_blind_ = true;
  if (add_descriptors(wakers.descriptors)) {
    // Who waits for descriptors hears no other bells, and need not be rung.
    if (!wakers.bells.empty()) is_blind_ = true;
    return;
  }
  is_blind_ = is_blind_ || !wakers.descriptors.empty();
  const bool all_bells =
      std::ranges::all_of(wakers.bells, [this](Doorbell* bell) { return add(bell); });
  if (!all_bells) is_blind_ = true;
}

bool Sleep::add(Doorbell* bell) noexcept {
  if (std::find(bells_, bells_ + bell_count_, bell) != bells_ + bell_count_) return true;
  if (bell_count_ == kMostBells) return false;
  bells_[bell_count_] = bell;
  tickets_[bell_count_++] = {bell, bell->announce()};
  announced_ns_ = now_ns();
  return true;
}

bool Sleep::add_descriptors(std::span<const int> descriptors) noexcept {
  if (descriptors.empty() || !heeds_descriptors_) return false;
  if (!has_alarm_) {
    has_alarm_ = alarm_.try_take();
    if (!has_alarm_) return false;
    descriptors_[descriptor_count_++] = {alarm_.descriptor_, POLLIN, 0};
  }
  for (const int descriptor : descriptors) {
    if (descriptor_count_ == kMostDescriptors) return false;
    descriptors_[descriptor_count_++] = {descriptor, POLLIN, 0};
  }
  return true;
}

void Sleep::begin_anew() noexcept {
  is_blind_ = false;
  descriptor_count_ = has_alarm_ ? 1 : 0;
}

bool Sleep::is_rung() const noexcept {
  return std::any_of(tickets_, tickets_ + bell_count_,
                     [](const Doorbell::Ticket& ticket) { return ticket.is_rung(); });
}

// Who waits for descriptors hears no other bell than the device's own.
bool Sleep::wait(std::int64_t most_ns, std::int64_t blind_ns) noexcept {
  const std::int64_t longest = ends_soon() ? std::min(most_ns, blind_ns) : most_ns;
  if (!has_alarm_) {
    Doorbell::wait_any({tickets_, static_cast<std::size_t>(bell_count_)}, longest);
    return false;
  }
  const timespec timeout = {static_cast<time_t>(longest / 1'000'000'000),
                            static_cast<long>(longest % 1'000'000'000)};
  // Ends early for a signal, which does no harm.
  const int ready =
      ::ppoll(descriptors_, static_cast<nfds_t>(descriptor_count_), &timeout, nullptr);
  return ready > (descriptors_[0].revents != 0 ? 1 : 0);
}

}  // namespace catenary
