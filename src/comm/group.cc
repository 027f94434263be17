#include "src/comm/group.h"

#include <algorithm>
#include <deque>
#include <future>
#include <unordered_map>
#include <utility>

#include "src/base/scope_exit.h"

namespace catenary {

Group& Group::of_this_thread() {
  static thread_local Group group;
  return group;
}

void Group::add(std::shared_ptr<Communicator> communicator, const OperationRequest& request) {
  auto member = std::find_if(members_.begin(), members_.end(), [&](const Member& known) {
    return known.communicator == communicator;
  });
  if (member == members_.end()) {
    const auto differs = [&](const Member& known) {
      return known.communicator->options().blocking != communicator->options().blocking;
    };
    if (std::any_of(members_.begin(), members_.end(), differs)) {
      throw_error(ErrorCode::kInvalidArgument,
                  "Blocking and nonblocking communicators are not allowed in the same group.");
    }
    members_.push_back({std::move(communicator), {}});
    member = std::prev(members_.end());
  }
  member->requests.push_back(request);
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
  return rows.outcome;
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
  std::unordered_map<const Stream*, const Member*> users;
  for (const Member& member : members) {
    for (const OperationRequest& request : member.requests) {
      if (users.try_emplace(request.stream, &member).first->second != &member) return true;
    }
  }
  return false;
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
