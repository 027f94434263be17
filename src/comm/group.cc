#include "src/comm/group.h"

#include <algorithm>
#include <compare>
#include <deque>
#include <future>
#include <utility>

#include "src/base/scope_exit.h"

namespace catenary {
namespace {

// What is kept for the next group: members, and how long their lists may be.
constexpr std::size_t kKeptMembers = 64;
constexpr std::size_t kKeptRequests = 4096;

}  // namespace

constinit thread_local Group* Group::mine_ = nullptr;

Group& Group::make() {
  struct Owner {
    Group group;
    ~Owner() { mine_ = nullptr; }
  };
  static thread_local Owner owner;
  mine_ = &owner.group;
  return owner.group;
}

Group::Member& Group::join(const std::shared_ptr<Communicator>& communicator) {
  for (Member& member : members()) {
    if (member.communicator == communicator) return member;
    if (member.communicator->options().blocking == communicator->options().blocking) continue;
    throw_error(ErrorCode::kInvalidArgument,
                "Blocking and nonblocking communicators are not allowed in the same group.");
  }
  if (joined_ == members_.size()) members_.emplace_back();
  members_[joined_].communicator = communicator;
  return members_[joined_++];
}

void Group::note_error(const Error& error) {
  if (active() && !first_error_) first_error_ = error;
}

// False: it was an inner level, and nothing happens before the outermost one is closed.
bool Group::close(const char* function) {
  if (depth_ == 0) throw_error(ErrorCode::kInvalidUsage, "%s: not in a group call.", function);
  return --depth_ == 0;
}

Group::Outcome Group::end() {
  if (!close("ncclGroupEnd")) return Outcome::kDone;
  const ScopeExit forgetting([this] { forget(); });
  ScopeExit cancel([this] { cancel_jobs(); });
  if (first_error_) throw Error(*first_error_);
  for (const Member& member : members()) member.communicator->check(member.requests());
  cancel.release();
  const Outcome outcome = jobs_.empty() ? Outcome::kDone : run_jobs();
  submit();
  return outcome;
}

Group::Outcome Group::run_jobs() {
  Rows rows;
  // Before `rows` waits: what cannot start would be missing for the others.
  ScopeExit cancel([this] { cancel_jobs(); });
  start_jobs(jobs_, rows);
  cancel.release();
  finish_jobs(rows);
  return rows.outcome;
}

void Group::cancel_jobs() const {
  for (const Job& job : jobs_) job.cancel();
}

// The lists keep their storage for the next group, unless it is a lot.
void Group::forget() noexcept {
  for (Member& member : members()) {
    member.communicator.reset();
    member.last_call = {};
    member.operations.clear();
    member.messages.clear();
    if (member.operations.capacity() > kKeptRequests) member.operations = {};
    if (member.messages.capacity() > kKeptRequests) member.messages = {};
  }
  joined_ = 0;
  if (members_.size() > kKeptMembers)
    members_.erase(members_.begin() + kKeptMembers, members_.end());
  jobs_.clear();
  first_error_.reset();
}

// Operations of a group run together, whatever their order: also those of different communicators,
// which on a stream that they share would go one after the other.
void Group::submit() {
  const std::span<Member> members = this->members();
  if (!share_a_stream()) {
    for (const Member& member : members) member.communicator->submit(member.requests());
    return;
  }
  std::deque<Event> done;
  const ScopeExit join([&] {
    for (std::size_t i = 0; i < done.size(); ++i) {
      members[i].communicator->join_streams(members[i].requests(), done[i]);
    }
  });
  for (const Member& member : members) {
    member.communicator->submit(member.requests(), &done.emplace_back(false));
  }
}

bool Group::share_a_stream() {
  if (joined_ < 2) return false;
  users_.clear();
  for (const Member& member : members()) {
    member.requests().for_each_stream([&](const Stream& stream) {
      const User user{&stream, &member};
      if (users_.empty() || users_.back() != user) users_.push_back(user);
    });
  }
  std::ranges::sort(users_);
  const auto is_shared = [](const User& one, const User& next) {
    return one.stream == next.stream && one.member != next.member;
  };
  return std::ranges::adjacent_find(users_, is_shared) != users_.end();
}

// Communicators run side by side.
std::optional<double> Group::simulate_end_ns() {
  if (!close("ncclGroupSimulateEnd")) return std::nullopt;
  const ScopeExit forgetting([this] { forget(); });
  cancel_jobs();
  if (first_error_) throw Error(*first_error_);
  if (!jobs_.empty()) {
    throw_error(ErrorCode::kInvalidUsage,
                "ncclGroupSimulateEnd : communicators cannot be made in a simulated group");
  }
  double longest = 0;
  for (const Member& member : members()) {
    member.communicator->check(member.requests());
    longest = std::max(longest, member.communicator->estimate_ns(member.requests()));
  }
  return longest;
}

void Group::drop() {
  if (!close("ncclGroupEnd")) return;
  const ScopeExit forgetting([this] { forget(); });
  cancel_jobs();
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
