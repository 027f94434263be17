// Operation and its Work: what torch gets for something that is under way.
//
// A Work is settled once, by whoever sees first that its event is done: a thread that waits for it
// (which drives the library itself, so that a synchronous operation costs no other thread), one
// that asks for its state, or the Settlers below if somebody wants to be called back. Settling
// keeps how it ended, drops what was kept alive, and completes the future. Tensors may be dropped
// only when waiting threads have been told: their Python objects need the GIL, which one that asks
// for the state holds.
//
// Copies into plain memory and out of it are a part of the stream like the operation itself, so
// that all goes in the order in which it was called, and no call waits for another.
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
#include <torch/csrc/distributed/c10d/Types.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <vector>

#include "library.h"

namespace catenary_torch {

// What an operation needs besides being enqueued.
struct Operation {
  c10d::OpType type = c10d::OpType::UNKNOWN;
  // What ranks must agree on beside it, where it has them.
  std::optional<at::ScalarType> element;
  std::optional<c10d::ReduceOp::RedOpType> reduction;
  std::optional<int> root;

  const char* title = "";           // for profilers
  std::vector<at::Tensor> inputs;   // for profilers, and kept alive
  std::vector<at::Tensor> outputs;  // Work::result(), and the value of a future that has no lists
  std::vector<at::Tensor> kept;     // alive until it is done
  std::vector<std::function<void()>> copies_in;   // called when all before it is done
  std::vector<std::function<void()>> copies_out;  // called once it is done well
  std::chrono::milliseconds timeout{0};
};

// For what has no stream to go along with.
void copy_in_now(Operation& operation);

class CatenaryWork : public c10d::Work {
 public:
  // Of an operation whose event is recorded later: by started(), or never.
  CatenaryWork(int rank, std::uint64_t sequence, Operation operation,
               std::shared_ptr<Communicator> communicator);
  ~CatenaryWork() override;

  // Before what it is and after it, on the same stream.
  void copy_in(const Stream& stream);
  void copy_out(const Stream& stream);
  // What is on the stream now is all that it takes.
  void started(const Stream& stream);

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
  // Whether it is done, and if so keeps in mind whether it went well: asked later, the
  // communicator may have failed for other reasons.
  bool look();
  // Once it is done. Waits if another thread has begun to.
  void settle();
  // Whether this is the first to hand it to the Settlers.
  bool hand_over() { return !claimed_.load() && !handed_over_.exchange(true); }
  const Communicator* communicator() const { return communicator_.get(); }

 protected:
  virtual void wait_until_done();
  // Makes sure that settle() is called soon after it is done, though nobody waits.
  virtual void settle_by_itself();
  // Once it is done.
  virtual bool went_well() const { return !own_failure_ && !communicator_->broken(); }
  void fail_with(std::exception_ptr error) { own_failure_ = std::move(error); }
  bool has_failed() const { return own_failure_ != nullptr; }

  const std::shared_ptr<Communicator> communicator_;
  Operation operation_;

 private:
  friend class Watch;
  void settle_claimed();
  void copy(std::vector<std::function<void()>>& copies);
  void complete(c10::ivalue::Future& future);

  const std::uint64_t sequence_;
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  std::optional<Event> event_;
  bool copies_by_stream_ = false;
  std::exception_ptr own_failure_;  // written before it is done
  std::atomic<bool> ended_well_{false};

  std::atomic<bool> claimed_{false};
  std::atomic<bool> handed_over_{false};
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
