#include "patience.h"

#include <algorithm>
#include <mutex>

namespace catenary_torch {
namespace {

constexpr std::chrono::milliseconds kOfLastGroup{5000};
constexpr std::chrono::milliseconds kOfOther{250};
constexpr std::chrono::milliseconds kOfAllOthers{1000};

struct Groups {
  std::mutex mutex;
  int alive = 0;
  std::chrono::milliseconds left = kOfAllOthers;  // until there is none

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
  return groups.alive == 1 ? kOfLastGroup : std::min(kOfOther, groups.left);
}

void Patience::end(Milliseconds in_vain) {
  Groups& groups = Groups::of_process();
  const std::lock_guard lock(groups.mutex);
  if (ended_) return;
  ended_ = true;
  groups.left =
      --groups.alive == 0 ? kOfAllOthers : std::max(groups.left - in_vain, Milliseconds(0));
}

}  // namespace catenary_torch
