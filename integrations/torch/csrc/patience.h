// Patience: how long a group waits at its end for ranks that come to theirs later, so that all of
// them hear if they did not agree.
//
// The last group of a process may take its time. While there are others, the process may be needed
// there, and what one group waits in vain the next one must not: destroying many groups takes no
// longer for that. Any thread.
#pragma once

#include <chrono>

namespace catenary_torch {

// One group's share, from its start to its end.
class Patience {
 public:
  using Milliseconds = std::chrono::milliseconds;

  Patience();
  ~Patience();
  Patience(const Patience&) = delete;
  Patience& operator=(const Patience&) = delete;

  // How long this group may wait now.
  Milliseconds granted() const;
  bool is_last() const;
  // It is gone, and has waited so long for nothing.
  void end(Milliseconds in_vain);

 private:
  bool ended_ = false;
};

}  // namespace catenary_torch
