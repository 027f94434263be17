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
#include <vector>

#include "src/base/error.h"
#include "src/comm/communicator.h"

namespace catenary {

class Group {
 public:
  static Group& of_this_thread() { return mine_ != nullptr ? *mine_ : make(); }
  // Whether this thread has a group open. Cheap: every operation asks.
  static bool any_open() { return mine_ != nullptr && mine_->active(); }

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
  void add(const std::shared_ptr<Communicator>& communicator, const OperationRequest& request);
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
    std::vector<OperationRequest> requests;
  };
  struct Contents {
    std::optional<Error> error;
    std::vector<Member> members;
    std::vector<Job> jobs;
  };
  // Jobs under way, and whether some go on in the background. Its end waits for the others.
  struct Rows {
    std::vector<std::future<void>> waiting;
    Outcome outcome = Outcome::kDone;
  };
  static Group& make();
  Member& join(const std::shared_ptr<Communicator>& communicator);
  Contents close();
  void submit(const std::vector<Member>& members);
  bool share_a_stream(const std::vector<Member>& members);
  void keep_storage(std::vector<Member> members) noexcept;
  static void start_jobs(const std::vector<Job>& jobs, Rows& rows);
  static void finish_jobs(Rows& rows);

  // In the thread's own block, which a library that is loaded late has room for too. Null until the
  // thread opens a group, and once it ends.
  [[gnu::tls_model("initial-exec")]] static constinit thread_local Group* mine_;

  int depth_ = 0;
  std::optional<Error> first_error_;
  std::vector<Member> members_;
  std::vector<Job> jobs_;

  // Storage kept from one group to the next: empty lists of requests, and who uses which stream.
  std::vector<std::vector<OperationRequest>> spare_lists_;
  struct User {
    const Stream* stream;
    const Member* member;
    auto operator<=>(const User&) const = default;
  };
  std::vector<User> users_;
};

}  // namespace catenary
