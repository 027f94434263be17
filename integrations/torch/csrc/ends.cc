#include "ends.h"

#include <atomic>
#include <iterator>
#include <system_error>
#include <utility>

namespace catenary_torch {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::chrono::seconds kInBackground{60};
// Threads of this many at a time; what ends beside them is waited for no longer.
constexpr std::size_t kMostOpen = 64;

std::exception_ptr finalize_and_close(Communicator& communicator, milliseconds patience) {
  std::exception_ptr disagreement = communicator.finalize(patience);
  communicator.close();
  return disagreement;
}

}  // namespace

Ends& Ends::of_process() {
  static std::atomic<Ends*> current{nullptr};
  Ends* ends = current.load();
  while (ends == nullptr || ends->pid_ != ::getpid()) {
    auto made = std::make_unique<Ends>();
    if (current.compare_exchange_strong(ends, made.get())) return *made.release();
  }
  return *ends;
}

std::exception_ptr Ends::end(const std::shared_ptr<Communicator>& communicator,
                             milliseconds patience, bool& in_vain) {
  std::future<std::exception_ptr> outcome;
  try {
    outcome = std::async(std::launch::async, [communicator] {
      return finalize_and_close(*communicator, kInBackground);
    });
  } catch (const std::system_error&) {  // no thread is left
    return finalize_and_close(*communicator, patience);
  }
  in_vain = outcome.wait_for(patience) != std::future_status::ready;
  if (!in_vain) return outcome.get();
  {
    const std::lock_guard lock(mutex_);
    const std::exception_ptr shown = collect(open_, steady_clock::now());
    if (!first_) first_ = shown;
    if (open_.size() < kMostOpen) {
      open_.push_back({communicator, std::move(outcome)});
      return nullptr;
    }
  }
  communicator->close();  // which ends the wait
  return outcome.get();
}

std::exception_ptr Ends::settle(steady_clock::time_point until) {
  std::vector<Open> open;
  {
    const std::lock_guard lock(mutex_);
    open.swap(open_);
  }
  std::exception_ptr first = collect(open, until);
  const std::lock_guard lock(mutex_);
  if (first_) first = std::exchange(first_, nullptr);
  std::move(open.begin(), open.end(), std::back_inserter(open_));
  return first;
}

void Ends::leave() {
  std::vector<Open> open;
  {
    const std::lock_guard lock(mutex_);
    open.swap(open_);
  }
  for (Open& each : open) each.communicator->close();
  for (Open& each : open) each.outcome.wait();
}

// Takes out those that are over by then. The first disagreement of theirs.
std::exception_ptr Ends::collect(std::vector<Open>& open, steady_clock::time_point until) {
  std::exception_ptr first;
  std::erase_if(open, [&](Open& each) {
    if (each.outcome.wait_until(until) != std::future_status::ready) return false;
    const std::exception_ptr disagreement = each.outcome.get();
    if (!first) first = disagreement;
    return true;
  });
  return first;
}

}  // namespace catenary_torch
