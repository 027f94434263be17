#include "work.h"

#include <c10/util/Exception.h>

#include "attendants.h"

namespace catenary_torch {
namespace {

using std::chrono::milliseconds;

// Titles cost a record each, also when no profiler listens.
const char* title_of(const Operation& operation) {
  return operation.title[0] != '\0' ? operation.title : nullptr;
}

std::string timed_out(const Operation& operation, milliseconds limit) {
  return c10::str("Timed out waiting ", limit.count(), "ms for ", operation.title,
                  " to complete; the operation timeout of the process group can be raised");
}

}  // namespace

CatenaryWork::CatenaryWork(int rank, std::uint64_t sequence, Operation operation,
                           std::shared_ptr<Communicator> communicator)
    : Work(rank, operation.type, title_of(operation), operation.inputs),
      communicator_(std::move(communicator)),
      operation_(std::move(operation)),
      sequence_(sequence) {}

CatenaryWork::~CatenaryWork() = default;

void CatenaryWork::started(const Stream& stream, std::shared_ptr<Stream> side) {
  event_.emplace(stream);
  side_ = std::move(side);
  Watch::of_process().add(c10::intrusive_ptr<CatenaryWork>::unsafe_reclaim_from_nonowning(this));
  if (recordFunctionEndCallback_) settle_by_itself();
}

bool CatenaryWork::isCompleted() {
  if (settled_.load()) return true;
  if (!done()) return false;
  settle();
  return true;
}

bool CatenaryWork::isSuccess() const {
  const std::lock_guard lock(mutex_);
  return completed_ && !exception_;
}

void CatenaryWork::wait_until_done() { event_->wait(); }

bool CatenaryWork::wait(milliseconds timeout) {
  if (!settled_.load()) {
    if (timeout == kNoTimeout) {
      wait_until_done();
      settle();
    } else {
      settle_by_itself();
      std::unique_lock lock(mutex_);
      const bool in_time = cv_.wait_for(lock, timeout, [this] { return completed_; });
      if (!in_time) throw_backend_error(timed_out(operation_, timeout));
    }
  }
  const std::lock_guard lock(mutex_);
  if (exception_) std::rethrow_exception(exception_);
  return true;
}

void CatenaryWork::abort() { communicator_->abort(c10::str(operation_.title, " was aborted")); }

void CatenaryWork::expire() { communicator_->abort(timed_out(operation_, operation_.timeout)); }

void CatenaryWork::settle() {
  if (claimed_.exchange(true)) {
    std::unique_lock lock(mutex_);
    cv_.wait(lock, [this] { return completed_; });
    return;
  }
  std::exception_ptr error = own_failure_ ? own_failure_ : communicator_->failure();
  if (!error && operation_.copy_out) {
    try {
      operation_.copy_out();
    } catch (...) {
      error = std::current_exception();
    }
  }
  operation_.copy_out = nullptr;
  operation_.inputs.clear();
  operation_.kept.clear();
  finish(error);
  settled_.store(true);
  c10::intrusive_ptr<c10::ivalue::Future> future;
  {
    const std::lock_guard lock(future_mutex_);
    future = future_;
    future_is_due_ = true;
  }
  if (future) complete(*future);
  Watch::of_process().remove(*this);
}

std::vector<at::Tensor> CatenaryWork::result() { return operation_.outputs; }

c10::intrusive_ptr<c10::ivalue::Future> CatenaryWork::getFuture() {
  bool is_due = false;
  c10::intrusive_ptr<c10::ivalue::Future> future;
  {
    const std::lock_guard lock(future_mutex_);
    if (future_) return future_;
    c10::TypePtr type = c10::ListType::create(c10::TensorType::get());
    if (operation_.in_list) type = c10::ListType::create(type);
    future = future_ = c10::make_intrusive<c10::ivalue::Future>(type);
    is_due = future_is_due_;
  }
  if (is_due) {
    complete(*future);
  } else {
    settle_by_itself();
  }
  return future;
}

// After finish(), when nothing of this changes any more.
void CatenaryWork::complete(c10::ivalue::Future& future) {
  if (exception_) {
    future.setError(exception_);
  } else if (operation_.in_list) {
    future.markCompleted(std::vector<std::vector<at::Tensor>>{operation_.outputs});
  } else {
    future.markCompleted(operation_.outputs);
  }
}

// The side stream lets others be called when the event is done without holding up what comes next.
void CatenaryWork::settle_by_itself() {
  if (by_itself_.exchange(true) || settled_.load()) return;
  require(catStreamWaitEvent(side_->get(), event_->get(), 0), "catStreamWaitEvent");
  auto self = c10::intrusive_ptr<CatenaryWork>::unsafe_reclaim_from_nonowning(this);
  side_->call([self] { Settlers::of_process().settle(self); });
}

CombinedWork::CombinedWork(int rank, std::vector<c10::intrusive_ptr<c10d::Work>> parts)
    : Work(rank, c10d::OpType::COALESCED), parts_(std::move(parts)) {}

bool CombinedWork::isCompleted() {
  for (const auto& part : parts_) {
    if (!part->isCompleted()) return false;
  }
  return true;
}

bool CombinedWork::isSuccess() const {
  for (const auto& part : parts_) {
    if (!part->isSuccess()) return false;
  }
  return true;
}

bool CombinedWork::wait(milliseconds timeout) {
  for (const auto& part : parts_) part->wait(timeout);
  return true;
}

c10::intrusive_ptr<c10::ivalue::Future> CombinedWork::getFuture() {
  c10::List<c10::intrusive_ptr<c10::ivalue::Future>> futures(
      c10::FutureType::create(c10::ListType::create(c10::TensorType::get())));
  for (const auto& part : parts_) futures.push_back(part->getFuture());
  return c10::collectAll(futures);
}

}  // namespace catenary_torch
