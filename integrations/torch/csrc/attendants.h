// The backend's own threads. Both are made when they are first needed and last as long as the
// process; a process that only waits for what it starts has one at most, which sleeps.
//
// Watch: has a list of all work under way, keeps it alive, and looks through it ten times a second
// for what is over its time. Settlers: settle work and run its callbacks, which may wait for other
// work; there are as many as callbacks that wait at once.
//
// Threads: any. Waiting: rest() only. Failure: std::system_error if a thread cannot be started.
#pragma once

#include <condition_variable>
#include <deque>
#include <list>
#include <mutex>
#include <vector>

#include "work.h"

namespace catenary_torch {

class Watch {
 public:
  static Watch& of_process();
  void add(const c10::intrusive_ptr<CatenaryWork>& work);
  void remove(CatenaryWork& work);
  // What is not settled of a communicator's.
  std::vector<c10::intrusive_ptr<CatenaryWork>> works_of(const Communicator& communicator);

 private:
  void serve();
  void look_through();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::list<c10::intrusive_ptr<CatenaryWork>> works_;
  bool started_ = false;
  bool asleep_ = false;
};

class Settlers {
 public:
  static Settlers& of_process();
  void settle(c10::intrusive_ptr<CatenaryWork> work);
  // Before Python ends, after which no callback could run: begins no more, and waits for those that
  // run, for so long at most.
  void rest(std::chrono::milliseconds limit);

 private:
  void serve();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::condition_variable rested_;
  std::deque<c10::intrusive_ptr<CatenaryWork>> ready_;
  std::size_t idle_ = 0;
  std::size_t busy_ = 0;
  bool resting_ = false;
};

}  // namespace catenary_torch
