#include "patience.h"

#include <algorithm>
#include <mutex>

namespace catenary_torch {
namespace {

constexpr std::chrono::milliseconds kOfLastGroup{5000};
constexpr std::chrono::milliseconds kOfOther{250};
constexpr std::chrono::milliseconds kOfAllOthers{1000};
constexpr std::chrono::seconds kRefill{60};

struct Groups {
  std::mutex mutex;
  int alive = 0;
  std::chrono::milliseconds left = kOfAllOthers;
  std::chrono::steady_clock::time_point spent;  // the last of it

  // Kept for ever: groups may outlive static objects.
  static Groups& of_process() {
    static auto* groups = new Groups;
    return *groups;
  }
};

}  // namespace

Patience::Patience() {
  Groups& groups = Groups::of_process();
  const std::lock_guard lock(groups.mutex);
  ++groups.alive;
}

Patience::~Patience() { end(Milliseconds(0)); }

Patience::Milliseconds Patience::granted() const {
  Groups& groups = Groups::of_process();
  const std::lock_guard lock(groups.mutex);
  if (std::chrono::steady_clock::now() - groups.spent > kRefill) groups.left = kOfAllOthers;
  return groups.alive == 1 ? kOfLastGroup : std::min(kOfOther, groups.left);
}

bool Patience::is_last() const {
  Groups& groups = Groups::of_process();
  const std::lock_guard lock(groups.mutex);
  return groups.alive == 1;
}

void Patience::end(Milliseconds in_vain) {
  Groups& groups = Groups::of_process();
  const std::lock_guard lock(groups.mutex);
  if (ended_) return;
  ended_ = true;
  --groups.alive;
  if (in_vain == Milliseconds(0)) return;
  groups.left = std::max(groups.left - in_vain, Milliseconds(0));
  groups.spent = std::chrono::steady_clock::now();
}

}  // namespace catenary_torch
