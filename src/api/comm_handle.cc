#include "src/api/comm_handle.h"

#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "src/api/arguments.h"
#include "src/base/error.h"
#include "src/base/scope_exit.h"

namespace catenary {
namespace {

// Keeps every handle reachable for as long as the process lives.
void remember(ncclComm_t handle) {
  static std::mutex mutex;
  static std::vector<ncclComm_t>& handles = *new std::vector<ncclComm_t>;
  const std::lock_guard lock(mutex);
  handles.push_back(handle);
}

bool is_ready(const std::future<void>& future) {
  return future.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

}  // namespace

ncclComm_t make_handle(std::shared_ptr<Communicator> communicator) {
  auto* handle = new ncclComm;
  remember(handle);
  handle->communicator = std::move(communicator);
  return handle;
}

bool in_progress(ncclComm& handle) {
  const std::lock_guard lock(handle.mutex);
  if (!handle.pending.valid()) return false;
  if (!is_ready(handle.pending)) return true;
  handle.pending = {};
  return false;
}

void start_pending(ncclComm& handle, std::function<void()> work) {
  const std::lock_guard lock(handle.mutex);
  handle.pending = std::async(std::launch::async, std::move(work));
}

void CommCall::enter(const char* function, Needs needs) {
  ncclComm* const comm = handle_;
  check_pointer(comm, function, "comm");
  std::uint64_t magic = comm->magic.load(std::memory_order_relaxed);
  if (magic != ncclComm::kAlive && magic != ncclComm::kEnded) {
    throw_error(ErrorCode::kInvalidArgument, "%s : corrupted comm object detected", function);
  }
  comm->calls.enter();
  magic = comm->magic.load(std::memory_order_seq_cst);
  const auto refuse = [&](ErrorCode code, const std::string& message) {
    comm->calls.leave();
    throw Error(code, message);
  };
  if (magic == ncclComm::kEnded) {
    refuse(ErrorCode::kInvalidArgument,
           format("%s : comm %p has already been destroyed", function, static_cast<void*>(comm)));
  }
  if (needs == Needs::kExists) return;
  const bool may_be_pending = !comm->communicator->joined() ||
                              (needs != Needs::kBegun && !comm->communicator->options().blocking);
  // One that has failed may be ended, although the thread that was making it is not quite done.
  const bool is_busy = needs != Needs::kBegun && may_be_pending && in_progress(*comm);
  if (is_busy || (may_be_pending && !comm->communicator->ready_or_failed())) {
    refuse(ErrorCode::kInvalidArgument,
           "Attempt to use communicator before the previous operation returned ncclSuccess");
  }
  if (needs == Needs::kReady && comm->finalized.load(std::memory_order_acquire)) {
    refuse(ErrorCode::kInvalidArgument, format("%s : the communicator was finalized", function));
  }
}

std::optional<Error> known_failure(ncclComm_t comm) {
  if (comm == nullptr || comm->magic.load(std::memory_order_relaxed) != ncclComm::kAlive) {
    return std::nullopt;
  }
  comm->calls.enter();
  const ScopeExit leave([comm] { comm->calls.leave(); });
  if (comm->magic.load(std::memory_order_seq_cst) != ncclComm::kAlive) return std::nullopt;
  return comm->communicator->known_failure();
}

std::shared_ptr<Communicator> end_if_alive(ncclComm& handle) {
  std::uint64_t alive = ncclComm::kAlive;
  if (!handle.magic.compare_exchange_strong(alive, ncclComm::kEnded, std::memory_order_seq_cst)) {
    return nullptr;
  }
  handle.calls.shut();
  while (handle.calls.inside() > 0) {
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  std::future<void> pending;
  {
    const std::lock_guard lock(handle.mutex);
    pending = std::move(handle.pending);
    handle.registrations.clear();
  }
  if (pending.valid()) pending.wait();
  return std::exchange(handle.communicator, nullptr);
}

}  // namespace catenary
