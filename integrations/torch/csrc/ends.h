// Ends: groups that this process is done with while other ranks may still come to their ends, and
// may not have agreed to the last. They are waited for in the background until the last group ends.
//
// Any thread. A thread of its own for each group that is waited for, for a minute at most.
#pragma once

#include <chrono>
#include <exception>
#include <future>
#include <memory>
#include <mutex>
#include <vector>

#include "library.h"

namespace catenary_torch {

class Ends {
 public:
  // Kept for ever: processes end without the end of their last group.
  static Ends& of_process();

  // Ends it. What the ranks disagreed about, if all come within `patience`; it goes on waiting for
  // who does not. Whether it was in vain is told in `in_vain`.
  std::exception_ptr end(const std::shared_ptr<Communicator>& communicator,
                         std::chrono::milliseconds patience, bool& in_vain);
  // What those that it still waits for have shown until `until`. Then it waits for none.
  std::exception_ptr settle(std::chrono::steady_clock::time_point until);

 private:
  struct Open {
    std::shared_ptr<Communicator> communicator;
    std::future<std::exception_ptr> outcome;
  };
  std::mutex mutex_;
  std::vector<Open> open_;  // guarded by mutex_
};

}  // namespace catenary_torch
