#include "library.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <vector>

#include "marks.h"

namespace catenary_torch {
namespace {

// Events that nobody uses. Kept for ever, so that work which outlives static objects finds it.
struct Stock {
  std::mutex mutex;
  std::vector<catEvent_t> events;

  static Stock& of_process() {
    static auto* stock = new Stock;
    return *stock;
  }
};

void call_and_delete(void* data) {
  const std::unique_ptr<std::function<void()>> then(static_cast<std::function<void()>*>(data));
  (*then)();
}

}  // namespace

void require(catError_t error, const char* call) {
  if (error == catSuccess) return;
  throw_backend_error(std::string(call) + ": " + catGetErrorString(error) + ": " +
                      catGetLastErrorMessage());
}

void throw_backend_error(const std::string& message) { C10_THROW_ERROR(DistBackendError, message); }

std::exception_ptr backend_error(const std::string& message) {
  try {
    throw_backend_error(message);
  } catch (...) {
    return std::current_exception();
  }
}

Stream::Stream() {
  require(catStreamCreateWithFlags(&stream_, catStreamNonBlocking), "catStreamCreateWithFlags");
}

Stream::~Stream() { catStreamDestroy(stream_); }

void Stream::call(std::function<void()> then) const {
  auto data = std::make_unique<std::function<void()>>(std::move(then));
  require(catLaunchHostFunc(stream_, call_and_delete, data.get()), "catLaunchHostFunc");
  data.release();
}

Event::Event(const Stream& stream) {
  Stock& stock = Stock::of_process();
  {
    const std::lock_guard lock(stock.mutex);
    if (!stock.events.empty()) {
      event_ = stock.events.back();
      stock.events.pop_back();
    }
  }
  if (event_ == nullptr) {
    require(catEventCreateWithFlags(&event_, catEventDisableTiming), "catEventCreateWithFlags");
  }
  require(catEventRecord(event_, stream.get()), "catEventRecord");
}

Event::~Event() {
  Stock& stock = Stock::of_process();
  const std::lock_guard lock(stock.mutex);
  stock.events.push_back(event_);
}

void call_after(const Event& event, std::function<void()> then) {
  // Streams that nobody uses; each serves one event at a time. Kept for ever.
  struct Sides {
    std::mutex mutex;
    std::vector<std::shared_ptr<Stream>> free;
  };
  static auto* sides = new Sides;
  std::shared_ptr<Stream> side;
  {
    const std::lock_guard lock(sides->mutex);
    if (!sides->free.empty()) {
      side = std::move(sides->free.back());
      sides->free.pop_back();
    }
  }
  if (!side) side = std::make_shared<Stream>();
  require(catStreamWaitEvent(side->get(), event.get(), 0), "catStreamWaitEvent");
  side->call([side, then = std::move(then)] {
    then();
    const std::lock_guard lock(sides->mutex);
    sides->free.push_back(side);
  });
}

Communicator::Communicator(const ncclUniqueId& id, int rank, int size, const std::string& name,
                           const std::string& remark)
    : name_(name), remark_(remark) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.commName = name_.c_str();
  ncclComm_t comm = nullptr;
  const ncclResult_t made = ncclCommInitRankConfig(&comm, size, id, rank, &config);
  if (made != ncclSuccess) {
    throw_backend_error(name_ + ": ncclCommInitRankConfig: " + describe(made) + remark_);
  }
  comm_.store(comm);
}

Communicator::~Communicator() {
  if (ncclComm_t comm = comm_.exchange(nullptr)) ncclCommAbort(comm);
}

void Communicator::require(ncclResult_t result, const char* call) {
  if (result == ncclSuccess) return;
  throw_if_failed();
  throw_backend_error(name_ + ": " + call + ": " + describe(result) + remark_);
}

std::string Communicator::describe(ncclResult_t result) {
  const std::string words = ncclGetLastError(comm_.load());
  return words.empty() ? ncclGetErrorString(result) : with_marks_in_words(words);
}

// To broadcast nothing is nothing to NCCL, but an error once the communicator has failed.
bool Communicator::broken() const {
  ncclComm_t comm = comm_.load();
  std::byte none{};
  return comm == nullptr ||
         ncclBroadcast(&none, &none, 0, ncclUint8, 0, comm, nullptr) != ncclSuccess;
}

std::exception_ptr Communicator::failure() {
  ncclComm_t comm = comm_.load();
  ncclResult_t state = ncclSuccess;
  if (comm != nullptr && ncclCommGetAsyncError(comm, &state) == ncclSuccess &&
      (state == ncclSuccess || state == ncclInProgress)) {
    return nullptr;
  }
  const std::lock_guard lock(mutex_);
  if (failure_.empty()) {
    failure_ = comm == nullptr ? "the process group was shut down" : describe(state);
  }
  return backend_error(name_ + ": " + failure_ + remark_);
}

void Communicator::throw_if_failed() {
  const std::exception_ptr failed = failure();
  if (!failed) return;
  told();
  std::rethrow_exception(failed);
}

void Communicator::abort(const std::string& why) {
  failure();
  ncclComm_t comm = nullptr;
  {
    const std::lock_guard lock(mutex_);
    comm = comm_.load();
    if (comm == nullptr) return;
    if (failure_.empty()) failure_ = why;
    comm_.store(nullptr);
  }
  ncclCommAbort(comm);
}

std::exception_ptr Communicator::finalize(std::chrono::milliseconds patience) {
  ncclComm_t comm = comm_.load();
  if (comm == nullptr) return nullptr;
  const auto patience_ms = static_cast<int>(std::max(patience.count(), std::int64_t{0}));
  if (catCommFinalize(comm, patience_ms) != ncclInvalidUsage) return nullptr;
  return told_.exchange(true) ? nullptr : failure();
}

void Communicator::close() {
  ncclComm_t comm = nullptr;
  {
    const std::lock_guard lock(mutex_);
    comm = comm_.exchange(nullptr);
  }
  if (comm != nullptr) ncclCommDestroy(comm);
}

}  // namespace catenary_torch
