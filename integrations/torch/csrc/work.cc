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

std::string timed_out(const Operation& operation, milliseconds limit, std::uint64_t sequence) {
  return c10::str("Timed out waiting ", limit.count(), "ms for ", operation.title, ", call ",
                  sequence, " of this rank on its group, to complete");
}

}  // namespace

void copy_in_now(Operation& operation) {
  for (const std::function<void()>& each : operation.copies_in) each();
  operation.copies_in.clear();
}

CatenaryWork::CatenaryWork(int rank, std::uint64_t sequence, Operation operation,
                           std::shared_ptr<Communicator> communicator)
    : Work(rank, operation.type, title_of(operation), operation.inputs),
      communicator_(std::move(communicator)),
      operation_(std::move(operation)),
      sequence_(sequence) {}

CatenaryWork::~CatenaryWork() = default;

// What a copy holds is dropped with the operation, not here: this may be the library's thread.
void CatenaryWork::copy(std::vector<std::function<void()>>& copies) {
  if (own_failure_) return;
  try {
    for (const std::function<void()>& each : copies) each();
  } catch (...) {
    fail_with(std::current_exception());
  }
}

void CatenaryWork::copy_in(const Stream& stream) {
  if (operation_.copies_in.empty()) return;
  if (stream.idle()) return copy_in_now(operation_);
  auto self = c10::intrusive_ptr<CatenaryWork>::unsafe_reclaim_from_nonowning(this);
  stream.call([self] { self->copy(self->operation_.copies_in); });
}

void CatenaryWork::copy_out(const Stream& stream) {
  if (operation_.copies_out.empty()) return;
  copies_by_stream_ = true;
  auto self = c10::intrusive_ptr<CatenaryWork>::unsafe_reclaim_from_nonowning(this);
  stream.call([self] {
    if (!self->communicator_->broken()) self->copy(self->operation_.copies_out);
  });
}

void CatenaryWork::started(const Stream& stream) {
  event_.emplace(stream);
  Watch::of_process().add(c10::intrusive_ptr<CatenaryWork>::unsafe_reclaim_from_nonowning(this));
  if (recordFunctionEndCallback_) settle_by_itself();
}

bool CatenaryWork::isCompleted() {
  if (settled_.load()) return true;
  if (!look()) return false;
  // The GIL may be held here, so this waits for nobody; callbacks are the Settlers'.
  if (!by_itself_.load() && !claimed_.exchange(true)) settle_claimed();
  const std::lock_guard lock(mutex_);
  return completed_;
}

bool CatenaryWork::look() {
  if (ended_well_.load()) return true;
  if (!done()) return false;
  if (went_well()) ended_well_.store(true);
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
    } else if (!isCompleted()) {
      settle_by_itself();
      std::unique_lock lock(mutex_);
      const bool in_time = cv_.wait_for(lock, timeout, [this] { return completed_; });
      if (!in_time) throw_backend_error(timed_out(operation_, timeout, sequence_));
    }
  }
  const std::lock_guard lock(mutex_);
  if (!exception_) return true;
  if (!own_failure_) communicator_->told();
  std::rethrow_exception(exception_);
}

void CatenaryWork::abort() { communicator_->abort(c10::str(operation_.title, " was aborted")); }

void CatenaryWork::expire() {
  communicator_->abort(timed_out(operation_, operation_.timeout, sequence_) +
                       "; the timeout of the process group can be longer");
}

void CatenaryWork::settle() {
  if (!claimed_.exchange(true)) return settle_claimed();
  std::unique_lock lock(mutex_);
  cv_.wait(lock, [this] { return completed_; });
}

void CatenaryWork::settle_claimed() {
  look();
  if (ended_well_.load() && !copies_by_stream_) copy(operation_.copies_out);
  std::exception_ptr error = own_failure_;
  if (!error && !ended_well_.load()) error = communicator_->failure();
  finish(error);
  settled_.store(true);
  operation_.copies_in.clear();
  operation_.copies_out.clear();
  operation_.inputs.clear();
  operation_.kept.clear();
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
    future = future_ =
        c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()));
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
  } else {
    future.markCompleted(operation_.outputs);
  }
}

void CatenaryWork::settle_by_itself() {
  if (by_itself_.exchange(true) || settled_.load()) return;
  auto self = c10::intrusive_ptr<CatenaryWork>::unsafe_reclaim_from_nonowning(this);
  call_after(*event_, [self] { Settlers::of_process().settle(self); });
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
  using std::chrono::steady_clock;
  const auto begin = steady_clock::now();
  for (const auto& part : parts_) {
    if (timeout == kNoTimeout) {
      part->wait();
      continue;
    }
    const auto gone = std::chrono::duration_cast<milliseconds>(steady_clock::now() - begin);
    part->wait(std::max(timeout - gone, milliseconds(1)));
  }
  return true;
}

c10::intrusive_ptr<c10::ivalue::Future> CombinedWork::getFuture() {
  c10::List<c10::intrusive_ptr<c10::ivalue::Future>> futures(
      c10::FutureType::create(c10::ListType::create(c10::TensorType::get())));
  for (const auto& part : parts_) futures.push_back(part->getFuture());
  return c10::collectAll(futures);
}

}  // namespace catenary_torch
