// Group: what a thread has called between ncclGroupStart and ncclGroupEnd.
//
// The depth, the operations and the first error belong to the calling thread, as the interface
// wants it; this is one of the two places with thread-local state (the other is the current
// device). Threads: each its own group. Waiting: end() waits for the jobs of blocking communicators
// (joining, splitting), which run side by side, and for nothing else. Failure: an error noted in a
// group, or operations of one of its communicators that cannot go together, end all of it: nothing
// is submitted, and end() throws that first error.
#pragma once

#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "src/base/error.h"
#include "src/comm/communicator.h"

namespace catenary {

class Group {
 public:
  static Group& of_this_thread() { return mine_ != nullptr ? *mine_ : make(); }
  // What this thread has open, or null. Cheap: every operation asks.
  static Group* open() { return mine_ != nullptr && mine_->active() ? mine_ : nullptr; }

  bool active() const { return depth_ > 0; }
  void start() { ++depth_; }
  // Closes one level; submits everything at the outermost. kInProgress: jobs of non-blocking
  // communicators go on in the background.
  enum class Outcome { kDone, kInProgress };
  Outcome end();
  // Closes one level; at the outermost says how long what was collected would take, and forgets
  // it. Nothing at an inner level. Throws kInvalidUsage if communicators are to be made in it.
  std::optional<double> simulate_end_ns();
  // Closes one level; at the outermost what was collected is forgotten.
  void drop();

  // While active.
  void add(const std::shared_ptr<Communicator>& communicator, const OperationRequest& request) {
    member_of(communicator).operations.push_back(request);
  }
  // What a message was called with: handles. Null: it is like no other.
  struct Call {
    const void* communicator = nullptr;
    const void* stream = nullptr;
    bool operator==(const Call&) const = default;
  };
  void add(const std::shared_ptr<Communicator>& communicator, const MessageRequest& message,
           const Call& call) {
    Member& member = member_of(communicator);
    member.messages.push_back(message);
    member.last_call = call;
  }
  // The communicator that joined last, which the group holds, if the last of its messages was
  // called like this; else null. add_like_last() is for another message of it, on that stream.
  Communicator* last_called(const Call& call) const {
    if (joined_ == 0 || call.communicator == nullptr) return nullptr;
    const Member& member = members_[joined_ - 1];
    return member.last_call == call ? member.communicator.get() : nullptr;
  }
  void add_like_last(MessageRequest message) {
    std::vector<MessageRequest>& messages = members_[joined_ - 1].messages;
    message.stream = messages.back().stream;
    messages.push_back(message);
  }
  // `run` waits for other ranks (all jobs of a group run at the same time), or, in the background,
  // only starts what waits. Jobs of the same parent run one after the other, in the order of the
  // calls, since they share its control plane. `cancel` is called if the group fails before all
  // jobs have started, also on those that have: it ends them.
  struct Job {
    std::function<void()> run;
    std::function<void()> cancel;
    bool background = false;
    const void* parent = nullptr;
  };
  void add_job(Job job) { jobs_.push_back(std::move(job)); }
  void note_error(const Error& error);

 private:
  struct Member {
    std::shared_ptr<Communicator> communicator;
    Call last_call;
    std::vector<OperationRequest> operations;
    std::vector<MessageRequest> messages;
    Requests requests() const { return {operations, messages}; }
  };
  // Jobs under way, and whether some go on in the background. Its end waits for the others.
  struct Rows {
    std::vector<std::future<void>> waiting;
    Outcome outcome = Outcome::kDone;
  };
  static Group& make();
  // Mostly it is the one of the call before.
  Member& member_of(const std::shared_ptr<Communicator>& communicator) {
    const bool again = joined_ > 0 && members_[joined_ - 1].communicator == communicator;
    return again ? members_[joined_ - 1] : join(communicator);
  }
  Member& join(const std::shared_ptr<Communicator>& communicator);
  bool close(const char* function);
  Outcome run_jobs();
  void submit();
  bool share_a_stream();
  void cancel_jobs() const;
  void forget() noexcept;
  std::span<Member> members() { return {members_.data(), joined_}; }
  static void start_jobs(const std::vector<Job>& jobs, Rows& rows);
  static void finish_jobs(Rows& rows);

  // In the thread's own block, which a library that is loaded late has room for too. Null until the
  // thread opens a group, and once it ends.
  [[gnu::tls_model("initial-exec")]] static constinit thread_local Group* mine_;

  int depth_ = 0;
  std::optional<Error> first_error_;
  // The first `joined_` take part; the others are empty, and keep their storage.
  std::vector<Member> members_;
  std::size_t joined_ = 0;
  std::vector<Job> jobs_;

  struct User {
    const Stream* stream;
    const Member* member;
    auto operator<=>(const User&) const = default;
  };
  std::vector<User> users_;  // who uses which stream; storage that is kept
};

}  // namespace catenary
