// Ends: groups that this process is done with while other ranks may still come to their ends, and
// may not have agreed to the last. They are waited for in the background, and what shows is told
// when the last group ends.
//
// Any thread. A thread of its own for each group that is waited for, for a minute at most.
#pragma once

#include <unistd.h>

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
  // Kept for ever, since threads may still use it when the process ends. A forked child has one of
  // its own, as it has no threads.
  static Ends& of_process();

  // Finalizes and closes it. What its ranks disagreed about, if all come within `patience`; it goes
  // on waiting for who does not, and then the wait was `in_vain`.
  std::exception_ptr end(const std::shared_ptr<Communicator>& communicator,
                         std::chrono::milliseconds patience, bool& in_vain);
  // What those that are or were waited for have shown until `until`, if nobody was told.
  std::exception_ptr settle(std::chrono::steady_clock::time_point until);
  // Says goodbye to who is still waited for: the process ends.
  void leave();

 private:
  struct Open {
    std::shared_ptr<Communicator> communicator;
    std::future<std::exception_ptr> outcome;
  };
  static std::exception_ptr collect(std::vector<Open>& open,
                                    std::chrono::steady_clock::time_point until);

  const pid_t pid_ = ::getpid();
  std::mutex mutex_;
  std::vector<Open> open_;    // guarded by mutex_
  std::exception_ptr first_;  // guarded by mutex_; that nobody was told of
};

}  // namespace catenary_torch
