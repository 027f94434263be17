// Operation and its Work: what torch gets for something that is under way.
//
// A Work is settled once, by whoever sees first that its event is done: a thread that waits for it
// (which drives the library itself, so that a synchronous operation costs no other thread), one
// that asks for its state, or the Settlers below if somebody wants to be called back. Settling
// copies results out where that is needed, drops what was kept alive, and completes the future.
//
// Threads: any. Waiting: wait() only. Failure: wait() throws what went wrong, in the library's
// words.
#pragma once

#include <ATen/ATen.h>

#include <chrono>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <vector>

#include "library.h"

namespace catenary_torch {

// What an operation needs besides being enqueued.
struct Operation {
  c10d::OpType type = c10d::OpType::UNKNOWN;
  const char* title = "";           // for profilers
  std::vector<at::Tensor> inputs;   // for profilers, and kept alive
  std::vector<at::Tensor> outputs;  // Work::result(), and the value of a future that has no lists
  bool in_list = false;             // the future's value is a list with the list of outputs
  std::vector<at::Tensor> kept;     // alive until it is done
  std::function<void()> copy_out;   // called once it is done well
  std::chrono::milliseconds timeout{0};
};

class CatenaryWork : public c10d::Work {
 public:
  // Of an operation whose event is recorded later: by started(), or never.
  CatenaryWork(int rank, std::uint64_t sequence, Operation operation,
               std::shared_ptr<Communicator> communicator);
  ~CatenaryWork() override;

  // What is on the stream now is all that it takes. `side` is where others wait for it.
  void started(const Stream& stream, std::shared_ptr<Stream> side);

  bool isCompleted() override;
  bool isSuccess() const override;
  bool wait(std::chrono::milliseconds timeout = kNoTimeout) override;
  void synchronize() override { wait(); }
  void abort() override;
  std::vector<at::Tensor> result() override;
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
  std::uint64_t getSequencenumber() const override { return sequence_; }

  // For the Watch.
  std::chrono::steady_clock::time_point began() const { return began_; }
  std::chrono::steady_clock::time_point deadline() const { return began_ + operation_.timeout; }
  void expire();
  // Told again and again while it takes long.
  virtual void linger() {}
  // Whether what is under way has come to its end, well or not.
  virtual bool done() const { return event_ && event_->done(); }
  // Once it is done.
  void settle();

 protected:
  virtual void wait_until_done();
  // Makes sure that settle() is called soon after it is done, though nobody waits.
  virtual void settle_by_itself();
  void fail_with(std::exception_ptr error) { own_failure_ = std::move(error); }

  const std::shared_ptr<Communicator> communicator_;
  Operation operation_;

 private:
  friend class Watch;
  void complete(c10::ivalue::Future& future);

  const std::uint64_t sequence_;
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  std::optional<Event> event_;
  std::shared_ptr<Stream> side_;
  std::exception_ptr own_failure_;

  std::atomic<bool> claimed_{false};
  std::atomic<bool> settled_{false};
  std::atomic<bool> by_itself_{false};
  std::mutex future_mutex_;
  c10::intrusive_ptr<c10::ivalue::Future> future_;  // guarded by future_mutex_
  bool future_is_due_ = false;                      // guarded by future_mutex_

  std::list<c10::intrusive_ptr<CatenaryWork>>::iterator watched_;  // the Watch's
  bool is_watched_ = false;
};

// Several that count as one: what a coalescing manager gets.
class CombinedWork : public c10d::Work {
 public:
  explicit CombinedWork(int rank, std::vector<c10::intrusive_ptr<c10d::Work>> parts);
  bool isCompleted() override;
  bool isSuccess() const override;
  bool wait(std::chrono::milliseconds timeout = kNoTimeout) override;
  void synchronize() override { wait(); }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;

 private:
  const std::vector<c10::intrusive_ptr<c10d::Work>> parts_;
};

}  // namespace catenary_torch
