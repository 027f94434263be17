// Catenary's C interface with owners and exceptions: communicators, streams and events.
//
// Threads: any. Waiting: connect() waits for all ranks, Event::wait() for the event. Owner: a
// Communicator is shared by its process group and by the work that it has under way. Failure:
// c10::DistBackendError with the library's own words.
#pragma once

#include <c10/util/intrusive_ptr.h>
#include <catenary/collectives.h>
#include <catenary/device.h>
#include <nccl.h>

#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

namespace catenary_torch {

// Throws if a call did not succeed; `call` says which one.
void require(catError_t error, const char* call);

[[noreturn]] void throw_backend_error(const std::string& message);
std::exception_ptr backend_error(const std::string& message);

// A queue of the library; non-blocking in CUDA's sense. What is enqueued outlives it.
class Stream {
 public:
  Stream();
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  catStream_t get() const { return stream_; }
  bool idle() const { return catStreamQuery(stream_) == catSuccess; }
  void wait() const { require(catStreamSynchronize(stream_), "catStreamSynchronize"); }
  // Calls `then` on a thread of the library when all before it is done, failed or not. It must not
  // wait for the library.
  void call(std::function<void()> then) const;

 private:
  catStream_t stream_ = nullptr;
};

// The point that a stream has come to. Made anew for each use, out of a stock.
class Event {
 public:
  explicit Event(const Stream& stream);
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  catEvent_t get() const { return event_; }
  bool done() const { return catEventQuery(event_) == catSuccess; }
  void wait() const { require(catEventSynchronize(event_), "catEventSynchronize"); }

 private:
  catEvent_t event_ = nullptr;
};

// A collective that moves nothing. NCCL makes nothing at all of one; but then a rank that does have
// something to move would be paired with another call than this one, and nobody would be told.
inline ncclResult_t issue_nothing(ncclComm_t comm, catStream_t stream) {
  return catBarrier(comm, stream);
}

// Calls `then` as Stream::call() does, when the event is done. Holds up no stream, nor what else is
// to be called.
void call_after(const Event& event, std::function<void()> then);

// One rank of a communicator, until it is closed or aborted.
class Communicator {
 public:
  // Meets the other ranks at `id`. Errors begin with `name` and end with `remark`.
  Communicator(const ncclUniqueId& id, int rank, int size, const std::string& name,
               const std::string& remark);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  // Throws if a call on it did not succeed, or if it failed before.
  void require(ncclResult_t result, const char* call);
  // Marks what is called next, until there is another mark.
  void mark(std::uint32_t mark) { catMarkCollectives(comm_.load(), mark); }
  // For calls that enqueue. Stale after an abort, which such calls answer with an error.
  ncclComm_t get() const { return comm_.load(); }

  // Whether it has failed or ended. Looks for no news, so that what is over by now went well if it
  // has not, though a peer may have ended since.
  bool broken() const;
  // What went wrong so far, or null. Asks how the peers are.
  std::exception_ptr failure();
  void throw_if_failed();
  // The user has been told of it.
  void told() { told_.store(true); }
  // Ends what is under way; `why` is what failure() says from here on, if nothing failed before.
  void abort(const std::string& why);
  // Waits for what is under way, and for the other ranks to come to this too, not longer than
  // `patience`. The disagreement of ranks that the user has not been told of yet, or null: what a
  // rank only sent may have been wrong, and show in nothing that came after it.
  std::exception_ptr finalize(std::chrono::milliseconds patience);
  // Leaves. Waits for what is under way.
  void close();

 private:
  std::string describe(ncclResult_t result);

  std::atomic<ncclComm_t> comm_{nullptr};
  const std::string name_;
  const std::string remark_;
  std::mutex mutex_;
  std::string failure_;  // guarded by mutex_
  std::atomic<bool> told_{false};
};

}  // namespace catenary_torch
