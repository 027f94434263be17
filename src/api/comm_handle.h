// What an ncclComm_t points to: a communicator, how far its making or ending has come, and who is
// inside a call.
//
// Handles are never freed, so that a stale one gives an error and not a crash; what they hold is.
// Threads: any. Waiting: ending waits for calls of other threads to leave, which abort makes them
// do. Failure: CommCall throws kInvalidArgument for a handle that is null, garbage, ended or not
// ready.
#pragma once

#include <atomic>
#include <future>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "nccl.h"
#include "src/base/biased_lock.h"
#include "src/comm/communicator.h"
#include "src/device/announced_buffer.h"

struct ncclComm {
  static constexpr std::uint64_t kAlive = 0x636174656e617279;  // "catenary"
  static constexpr std::uint64_t kEnded = 0x656e646564636f6d;

  std::atomic<std::uint64_t> magic{kAlive};
  std::atomic<bool> finalized{false};
  catenary::BiasedCount calls;  // threads inside a call
  std::shared_ptr<catenary::Communicator> communicator;

  // A non-blocking call that is under way (joining, splitting, finalizing).
  std::mutex mutex;
  std::future<void> pending;  // guarded by mutex
  // What was announced with ncclCommRegister or ncclCommWindowRegister, by its address, which is
  // the user's handle. Guarded by mutex.
  std::unordered_map<void*, std::unique_ptr<catenary::AnnouncedBuffer>> registrations;

  // Neither ended nor finalized.
  bool in_prime() const {
    return magic.load(std::memory_order_relaxed) == kAlive &&
           !finalized.load(std::memory_order_acquire);
  }
};

namespace catenary {

// Makes a handle, and keeps it for ever.
ncclComm_t make_handle(std::shared_ptr<Communicator> communicator);

// Whether a pending call is still under way. A call that failed has made its error the
// communicator's.
bool in_progress(ncclComm& handle);
// Runs `work` in the background as the handle's pending call. Throws std::system_error if the
// system has no thread left; nothing is pending then.
void start_pending(ncclComm& handle, std::function<void()> work);

// Being inside a call on a communicator, for one scope.
class CommCall {
 public:
  enum class Needs { kReady, kMade, kBegun, kExists };
  // `function` names the caller in errors. kBegun: it is not being made in the background. kMade:
  // no call at all is pending. kReady: and it is not finalized.
  CommCall(ncclComm_t comm, const char* function, Needs needs = Needs::kReady) : handle_(comm) {
    if (!try_enter()) enter(function, needs);
  }
  ~CommCall() { handle_->calls.leave(); }
  CommCall(const CommCall&) = delete;
  CommCall& operator=(const CommCall&) = delete;

  Communicator* operator->() const { return handle_->communicator.get(); }
  const std::shared_ptr<Communicator>& shared() const { return handle_->communicator; }
  ncclComm& handle() const { return *handle_; }

 private:
  // Of what is in its prime, as mostly all is: made, blocking, neither finalized nor ended. Entered
  // first and looked at afterwards, so that whoever ends the handle either sees us inside or is
  // seen by us.
  bool try_enter() {
    if (handle_ == nullptr || handle_->magic.load(std::memory_order_relaxed) != ncclComm::kAlive)
      return false;
    handle_->calls.enter();
    if (handle_->magic.load(std::memory_order_seq_cst) == ncclComm::kAlive) {
      const Communicator& communicator = *handle_->communicator;
      const bool is_made = communicator.joined() && communicator.options().blocking;
      if (is_made && !handle_->finalized.load(std::memory_order_acquire)) return true;
    }
    handle_->calls.leave();
    return false;
  }
  void enter(const char* function, Needs needs);

  ncclComm* handle_;
};

// Why the communicator failed, as far as is known. Of null or of a handle that was ended, nothing.
std::optional<Error> known_failure(ncclComm_t comm);

// Ends a handle: later calls on it fail. Waits for calls of other threads. Returns what it held;
// null if somebody else has ended it.
std::shared_ptr<Communicator> end_if_alive(ncclComm& handle);

}  // namespace catenary
