#include "src/engine/group_run.h"

#include <utility>

namespace catenary {

void GroupRun::begin(std::shared_ptr<RunOwner> owner) {
  owner_ = std::move(owner);
  members_.clear();
  left_ = 0;
}

void GroupRun::add(const RunSpec& spec, Turn& turn) {
  members_.push_back({ScheduleRun(spec), &turn, turn.take(), false});
  ++left_;
}

Task::Progress GroupRun::poll() {
  if (!owner_->may_go_on()) return Progress::kNone;
  Progress progress = poll_members();
  if (progress == Progress::kNone) {
    owner_->poll_transports();
    progress = poll_members();
  }
  owner_->polled(progress != Progress::kNone);
  return progress;
}

Task::Progress GroupRun::poll_members() {
  bool moved = false;
  for (Member& member : members_) {
    if (member.over || member.turn->serving != member.ticket) continue;
    const Progress progress = member.run.advance();
    moved = moved || progress != Progress::kNone;
    if (progress != Progress::kDone) continue;
    member.over = true;
    ++member.turn->serving;
    --left_;
  }
  if (left_ == 0) return Progress::kDone;
  return moved ? Progress::kSome : Progress::kNone;
}

void GroupRun::check() {
  if (owner_->may_go_on()) owner_->check_peers(*this);
}

const ScheduleRun* GroupRun::waiting_run() const {
  for (const Member& member : members_) {
    if (!member.over && member.turn->serving == member.ticket) return &member.run;
  }
  return nullptr;
}

// The turns are not passed on: a failed communicator runs nothing more.
bool GroupRun::fail(const std::exception& error) noexcept { return owner_->run_failed(error); }

void GroupRun::recycle() noexcept {
  const std::shared_ptr<RunOwner> owner = std::move(owner_);
  owner->run_over(*this);
}

}  // namespace catenary
