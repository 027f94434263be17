#include "src/engine/group_run.h"

#include <algorithm>

#include "src/base/error.h"
#include "src/base/log.h"

namespace catenary {
namespace {

// A peer that runs has seen within microseconds that it must not write any more, or within
// milliseconds if it has lost its core. One that is stopped might never.
constexpr std::int64_t kMostWritersWait_ms = 5000;

}  // namespace

void GroupRun::add(const Lane& lane) {
  open_.push_back(static_cast<std::uint32_t>(count_));
  if (count_ == members_.size()) members_.emplace_back();
  Member& member = members_[count_++];
  member.run.begin(lane.spec, lane.input, lane.output, static_cast<std::uint32_t>(lane.ticket));
  member.run.skip(lane.steps_done);
  member.turn = &lane.turn;
  member.ticket = lane.ticket;
  member.lanes = lane.lanes;
  member.over = false;
}

Task::Progress GroupRun::poll() {
  if (!owner_->may_go_on()) return Progress::kNone;
  Progress progress = poll_runs();
  if (progress == Progress::kNone) progress = poll_transports();
  ++polls_;
  owner_->polled(progress != Progress::kNone);
  return progress;
}

Task::Progress GroupRun::poll_transports() {
  if (!owner_->poll_transports()) return Progress::kNone;
  return std::max(poll_runs(), Progress::kSome);
}

inline Task::Progress GroupRun::poll_runs() {
  bool moved = !open_.empty() && poll_members();
  // A slice of each in turn, again and again: who enqueues a message and then computes, or only
  // asks whether it is over, has sent what there is room for.
  while (!open_messages_.empty() && poll_messages()) {
    moved = true;
    if (owner_->is_in_trouble()) break;
  }
  if (open_.empty() && open_messages_.empty()) return Progress::kDone;
  return moved || help() ? Progress::kSome : Progress::kNone;
}

// Helps a peer that copies what we lent, for one piece of it: other work is to be looked at, too.
inline bool GroupRun::help() {
  const auto helps = [this](std::uint32_t index) { return members_[index].run.may_help(); };
  const bool is_able = some_are_long_ || std::ranges::any_of(open_, helps);
  return is_able && owner_->has_time() && help_somebody();
}

bool GroupRun::help_somebody() {
  for (const std::uint32_t index : open_) {
    if (is_on_turn(members_[index]) && members_[index].run.help()) return true;
  }
  // Peers in turn, as the first one may always have a piece.
  const std::size_t size = open_messages_.size();
  for (std::size_t i = 0; i < size; ++i) {
    Message& message = messages_[open_messages_[(next_helped_ + i) % size]];
    if (!is_on_turn(message) || !message.run.help()) continue;
    next_helped_ = (next_helped_ + i + 1) % size;
    return true;
  }
  return false;
}

bool GroupRun::poll_members() {
  bool moved = false;
  bool some_are_over = false;
  for (const std::uint32_t index : open_) {
    Member& member = members_[index];
    if (!is_on_turn(member) || member.run.still_waits()) continue;
    if (!member.run.started()) {
      owner_->begins(member.run.spec().descriptor);
      if (member.run.is_open_to_writers()) owner_->opens_to_writers(1);
    }
    const Progress progress = member.run.advance();
    moved = moved || progress != Progress::kNone;
    if (progress != Progress::kDone) continue;
    member.over = some_are_over = true;
    if (member.run.is_open_to_writers()) owner_->opens_to_writers(-1);
    if (member.lanes == 1 || !has_open_lane(index)) ++member.turn->serving;
  }
  if (some_are_over) drop_what_is_over();
  return moved;
}

bool GroupRun::poll_messages() {
  bool moved = false;
  bool some_are_over = false;
  ByteView soon;
  for (const std::uint32_t index : open_messages_) {
    Message& message = messages_[index];
    if (!is_on_turn(message)) continue;
    if (some_are_long_) count(message, message.run.is_open_to_writers());
    moved = (!message.run.is_moved() && message.run.move(soon)) || moved;
    if (!message.run.is_moved() || !message.run.try_finish()) continue;
    message.over = some_are_over = true;
    if (some_are_long_) count(message, false);
    ++message.turn->serving;
  }
  if (some_are_over) {
    std::erase_if(open_messages_, [this](std::uint32_t index) { return messages_[index].over; });
  }
  return moved || some_are_over;
}

inline void GroupRun::count(Message& message, bool is_open) {
  if (message.counted == is_open) return;
  message.counted = is_open;
  owner_->opens_to_writers(is_open ? 1 : -1);
}

inline void GroupRun::drop_what_is_over() {
  if (open_.size() == 1) return open_.clear();
  std::erase_if(open_, [this](std::uint32_t index) { return members_[index].over; });
}

// Lanes of one operation are neighbours.
bool GroupRun::has_open_lane(std::size_t index) const {
  const Member& of = members_[index];
  const auto reach = static_cast<std::size_t>(of.lanes) - 1;
  const std::size_t end = std::min(index + reach + 1, count_);
  for (std::size_t i = index - std::min(index, reach); i < end; ++i) {
    const Member& other = members_[i];
    if (other.turn == of.turn && other.ticket == of.ticket && !other.over) return true;
  }
  return false;
}

void GroupRun::check() {
  if (owner_->may_go_on()) owner_->check_peers(*this);
}

std::optional<GroupRun::Waiting> GroupRun::waiting() const {
  if (const ScheduleRun* run = waiting_collective()) {
    return Waiting{run->spec().descriptor, run->waits_for(), run->only_waits_to_be_taken()};
  }
  const Message* message = waiting_message();
  if (message == nullptr) return std::nullopt;
  return Waiting{message->run.descriptor(), message->run.peer(), message->run.is_moved()};
}

const ScheduleRun* GroupRun::waiting_collective() const {
  for (const std::uint32_t index : open_) {
    const Member& member = members_[index];
    if (!member.over && is_on_turn(member)) return &member.run;
  }
  return nullptr;
}

// What only has to be taken by its peer comes second: that says nothing about who is at fault.
const GroupRun::Message* GroupRun::waiting_message() const {
  const Message* moved = nullptr;
  for (const std::uint32_t index : open_messages_) {
    const Message& message = messages_[index];
    if (message.over || !is_on_turn(message)) continue;
    if (!message.run.is_moved()) return &message;
    if (moved == nullptr) moved = &message;
  }
  return moved;
}

// The turns are not passed on: a failed communicator runs nothing more.
bool GroupRun::fail(const std::exception& error) noexcept {
  return owner_->run_failed(error) && is_taken_back();
}

// Whether users may have their buffers back: no peer reads what is lent as if it still were, and
// none writes to them.
bool GroupRun::is_taken_back() noexcept {
  if (!withdrawn_) {
    withdraw();
    withdrawn_ = Deadline::after_ms(kMostWritersWait_ms);
  }
  const int writer = this->writer();
  if (writer == kNobody) return true;
  if (!withdrawn_->passed()) return false;
  forbid_writers();
  CATENARY_WARN(
      format("rank %d has stopped in the middle of writing to the output of an operation that is "
             "given up; if it goes on, up to 128 KB of that may change once more",
             writer));
  return true;
}

void GroupRun::forbid_writers() noexcept {
  for (const std::uint32_t index : open_) {
    if (!members_[index].over) members_[index].run.forbid_writer();
  }
  for (const std::uint32_t index : open_messages_) {
    if (!messages_[index].over) messages_[index].run.forbid_writer();
  }
}

// A rank that writes to the output of something that is not over, or kNobody.
int GroupRun::writer() const noexcept {
  for (const std::uint32_t index : open_) {
    const Member& member = members_[index];
    const int writer = member.over ? kNobody : member.run.writer();
    if (writer != kNobody) return writer;
  }
  for (const std::uint32_t index : open_messages_) {
    const Message& message = messages_[index];
    const int writer = message.over ? kNobody : message.run.writer();
    if (writer != kNobody) return writer;
  }
  return kNobody;
}

void GroupRun::withdraw() noexcept {
  for (const std::uint32_t index : open_) {
    if (!members_[index].over) members_[index].run.withdraw();
  }
  for (const std::uint32_t index : open_messages_) {
    if (!messages_[index].over) messages_[index].run.withdraw();
  }
}

void GroupRun::recycle() noexcept {
  end();
  owner_->run_over(*this);
}

void GroupRun::end() noexcept {
  withdraw();
  for (const std::uint32_t index : open_) {
    const Member& member = members_[index];
    const bool is_open = !member.over && member.run.started() && member.run.is_open_to_writers();
    if (is_open) owner_->opens_to_writers(-1);
  }
  for (const std::uint32_t index : open_messages_) count(messages_[index], false);
}

}  // namespace catenary
