#include "src/comm/group.h"

#include <algorithm>
#include <compare>
#include <deque>
#include <future>
#include <utility>

#include "src/base/scope_exit.h"

namespace catenary {
namespace {

// What is kept for the next group: lists of requests, and how long they may be.
constexpr std::size_t kKeptLists = 64;
constexpr std::size_t kKeptRequests = 4096;

}  // namespace

constinit thread_local Group* Group::mine_ = nullptr;

Group& Group::make() {
  struct Owner {
    Group group;
    ~Owner() { mine_ = nullptr; }
  };
  static thread_local Owner owner;
  owner.group.spare_lists_.reserve(kKeptLists);
  mine_ = &owner.group;
  return owner.group;
}

void Group::add(const std::shared_ptr<Communicator>& communicator,
                const OperationRequest& request) {
  // Mostly it is the one of the call before.
  const bool again = !members_.empty() && members_.back().communicator == communicator;
  (again ? members_.back() : join(communicator)).requests.push_back(request);
}

Group::Member& Group::join(const std::shared_ptr<Communicator>& communicator) {
  const auto known = std::find_if(members_.begin(), members_.end(), [&](const Member& member) {
    return member.communicator == communicator;
  });
  if (known != members_.end()) return *known;
  const auto differs = [&](const Member& member) {
    return member.communicator->options().blocking != communicator->options().blocking;
  };
  if (std::any_of(members_.begin(), members_.end(), differs)) {
    throw_error(ErrorCode::kInvalidArgument,
                "Blocking and nonblocking communicators are not allowed in the same group.");
  }
  members_.push_back({communicator, {}});
  if (!spare_lists_.empty()) {
    members_.back().requests = std::move(spare_lists_.back());
    spare_lists_.pop_back();
  }
  return members_.back();
}

void Group::note_error(const Error& error) {
  if (active() && !first_error_) first_error_ = error;
}

// What was collected, once the outermost level is closed; nothing before that.
Group::Contents Group::close() {
  if (depth_ == 0) throw_error(ErrorCode::kInvalidUsage, "ncclGroupEnd: not in a group call.");
  if (--depth_ > 0) return {};
  return {std::exchange(first_error_, std::nullopt), std::exchange(members_, {}),
          std::exchange(jobs_, {})};
}

Group::Outcome Group::end() {
  Contents contents = close();
  Rows rows;
  // Before `rows` waits: what cannot start would be missing for the others.
  ScopeExit cancel([&contents] {
    for (const Job& job : contents.jobs) job.cancel();
  });
  if (contents.error) throw Error(*contents.error);
  for (const Member& member : contents.members) member.communicator->check(member.requests);
  start_jobs(contents.jobs, rows);
  cancel.release();
  finish_jobs(rows);
  submit(contents.members);
  keep_storage(std::move(contents.members));
  return rows.outcome;
}

void Group::keep_storage(std::vector<Member> members) noexcept {
  for (Member& member : members) {
    const bool is_small = member.requests.capacity() <= kKeptRequests;
    if (!is_small || spare_lists_.size() == spare_lists_.capacity()) continue;
    member.requests.clear();
    spare_lists_.push_back(std::move(member.requests));
  }
  members.clear();
  if (members_.empty() && members.capacity() > members_.capacity()) members_ = std::move(members);
}

// Operations of a group run together, whatever their order: also those of different communicators,
// which on a stream that they share would go one after the other.
void Group::submit(const std::vector<Member>& members) {
  if (!share_a_stream(members)) {
    for (const Member& member : members) member.communicator->submit(member.requests);
    return;
  }
  std::deque<Event> done;
  const ScopeExit join([&] {
    for (std::size_t i = 0; i < done.size(); ++i) {
      members[i].communicator->join_streams(members[i].requests, done[i]);
    }
  });
  for (const Member& member : members) {
    member.communicator->submit(member.requests, &done.emplace_back(false));
  }
}

bool Group::share_a_stream(const std::vector<Member>& members) {
  if (members.size() < 2) return false;
  users_.clear();
  for (const Member& member : members) {
    for (const OperationRequest& request : member.requests) {
      const User user{request.stream, &member};
      if (users_.empty() || users_.back() != user) users_.push_back(user);
    }
  }
  std::ranges::sort(users_);
  const auto is_shared = [](const User& one, const User& next) {
    return one.stream == next.stream && one.member != next.member;
  };
  return std::ranges::adjacent_find(users_, is_shared) != users_.end();
}

// Communicators run side by side.
std::optional<double> Group::simulate_end_ns() {
  if (depth_ > 1) return close(), std::nullopt;
  const Contents contents = close();
  for (const Job& job : contents.jobs) job.cancel();
  if (contents.error) throw Error(*contents.error);
  if (!contents.jobs.empty()) {
    throw_error(ErrorCode::kInvalidUsage,
                "ncclGroupSimulateEnd : communicators cannot be made in a simulated group");
  }
  double longest = 0;
  for (const Member& member : contents.members) {
    member.communicator->check(member.requests);
    longest = std::max(longest, member.communicator->estimate_ns(member.requests));
  }
  return longest;
}

void Group::drop() {
  for (const Job& job : close().jobs) job.cancel();
}

// All at once, because each waits for ranks that others of them may be; but for those of one
// parent.
void Group::start_jobs(const std::vector<Job>& jobs, Rows& rows) {
  std::vector<std::vector<const Job*>> by_parent;
  for (const Job& job : jobs) {
    if (job.background) {
      job.run();
      rows.outcome = Outcome::kInProgress;
      continue;
    }
    const auto row =
        std::find_if(by_parent.begin(), by_parent.end(), [&](const std::vector<const Job*>& known) {
          return job.parent != nullptr && known.front()->parent == job.parent;
        });
    if (row != by_parent.end()) {
      row->push_back(&job);
    } else {
      by_parent.push_back({&job});
    }
  }
  for (const std::vector<const Job*>& row : by_parent) {
    // The last one runs in this thread, when it is waited for.
    const bool last = &row == &by_parent.back();
    rows.waiting.push_back(std::async(last ? std::launch::deferred : std::launch::async, [row] {
      for (const Job* job : row) job->run();
    }));
  }
}

void Group::finish_jobs(Rows& rows) {
  for (auto row = rows.waiting.rbegin(); row != rows.waiting.rend(); ++row) row->wait();
  for (auto& row : rows.waiting) row.get();
}

}  // namespace catenary
