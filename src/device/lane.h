// Lane: an engine of the device beside its executor: one thread that runs jobs which may take long,
// so that they never hold up communication. A device has one for the user's functions and one for
// copies.
//
// Threads: run() from any. Jobs run one after the other, under no lock. Waiting: run() never waits.
// Owner: the device, never destroyed; a job must live until it has finished, and is not touched
// afterwards. Failure: run() throws if the thread cannot be started.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>

namespace catenary {

class Executor;

class Job {
 public:
  virtual ~Job() = default;
  virtual void execute() = 0;
  bool finished() const noexcept { return finished_.load(std::memory_order_acquire); }

 private:
  friend class Lane;
  Job* next_ = nullptr;
  std::atomic<bool> finished_{false};
};

class Lane {
 public:
  Lane(std::string name, Executor& executor) : name_(std::move(name)), executor_(executor) {}
  void run(Job& job);

 private:
  void serve();

  const std::string name_;
  Executor& executor_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Job* first_ = nullptr;
  Job* last_ = nullptr;
  bool started_ = false;
};

}  // namespace catenary
