#include "src/engine/group_run.h"

#include <algorithm>
#include <utility>

namespace catenary {

void GroupRun::begin(std::shared_ptr<RunOwner> owner) {
  owner_ = std::move(owner);
  members_.clear();
  left_ = 0;
}

void GroupRun::add(const RunSpec& lane, Turn& turn, std::uint64_t ticket) {
  members_.push_back({ScheduleRun(lane), &turn, ticket, false});
  ++left_;
}

Task::Progress GroupRun::poll() {
  if (!owner_->may_go_on()) return Progress::kNone;
  Progress progress = poll_members();
  if (progress == Progress::kNone) {
    owner_->poll_transports();
    progress = poll_members();
  }
  ++polls_;
  owner_->polled(progress != Progress::kNone);
  return progress;
}

Task::Progress GroupRun::poll_members() {
  bool moved = false;
  for (Member& member : members_) {
    if (!waits(member)) continue;
    if (!member.run.started()) owner_->begins(member.run.spec().descriptor);
    const Progress progress = member.run.advance();
    moved = moved || progress != Progress::kNone;
    if (progress != Progress::kDone) continue;
    member.over = true;
    --left_;
    if (all_lanes_over(member)) ++member.turn->serving;
  }
  if (left_ == 0) return Progress::kDone;
  return moved ? Progress::kSome : Progress::kNone;
}

// Lanes of one operation are neighbours, and few.
bool GroupRun::all_lanes_over(const Member& member) const {
  const auto is_open_lane = [&](const Member& other) {
    return other.turn == member.turn && other.ticket == member.ticket && !other.over;
  };
  const auto here = members_.begin() + (&member - members_.data());
  const auto first = here - std::min<std::ptrdiff_t>(here - members_.begin(), kMostLanes - 1);
  const auto last = here + std::min<std::ptrdiff_t>(members_.end() - here, kMostLanes);
  return std::none_of(first, last, is_open_lane);
}

void GroupRun::check() {
  if (owner_->may_go_on()) owner_->check_peers(*this);
}

const ScheduleRun* GroupRun::waiting_run() const {
  for (const Member& member : members_) {
    if (waits(member)) return &member.run;
  }
  return nullptr;
}

const ScheduleRun* GroupRun::waiting_collective() const {
  for (const Member& member : members_) {
    if (waits(member) && !is_point_to_point(member.run.spec().descriptor.kind)) return &member.run;
  }
  return nullptr;
}

// The turns are not passed on: a failed communicator runs nothing more.
bool GroupRun::fail(const std::exception& error) noexcept { return owner_->run_failed(error); }

void GroupRun::recycle() noexcept {
  if (left_ != 0) {
    for (const Member& member : members_) {
      if (!member.over) member.run.withdraw();
    }
  }
  const std::shared_ptr<RunOwner> owner = std::move(owner_);
  owner->run_over(*this);
}

}  // namespace catenary
