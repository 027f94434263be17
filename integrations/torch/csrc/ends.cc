#include "ends.h"

#include <utility>

namespace catenary_torch {
namespace {

constexpr std::chrono::seconds kInBackground{60};
// Threads of this many at a time; what ends beside them is waited for no longer.
constexpr std::size_t kMostOpen = 64;

}  // namespace

Ends& Ends::of_process() {
  static auto* ends = new Ends;
  return *ends;
}

std::exception_ptr Ends::end(const std::shared_ptr<Communicator>& communicator,
                             std::chrono::milliseconds patience, bool& in_vain) {
  std::future<std::exception_ptr> outcome = std::async(std::launch::async, [communicator] {
    std::exception_ptr disagreement = communicator->finalize(kInBackground);
    communicator->close();
    return disagreement;
  });
  in_vain = outcome.wait_for(patience) != std::future_status::ready;
  if (!in_vain) return outcome.get();
  {
    const std::lock_guard lock(mutex_);
    if (open_.size() < kMostOpen) {
      open_.push_back({communicator, std::move(outcome)});
      return nullptr;
    }
  }
  communicator->abort("the process group has ended");
  return outcome.get();
}

std::exception_ptr Ends::settle(std::chrono::steady_clock::time_point until) {
  std::vector<Open> open;
  {
    const std::lock_guard lock(mutex_);
    open.swap(open_);
  }
  std::exception_ptr first;
  for (Open& each : open) {
    if (each.outcome.wait_until(until) != std::future_status::ready) {
      each.communicator->abort("the process group has ended");
    }
    const std::exception_ptr disagreement = each.outcome.get();
    if (!first) first = disagreement;
  }
  return first;
}

}  // namespace catenary_torch
