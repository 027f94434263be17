#include "src/bootstrap/root_line.h"

#include <poll.h>

#include <utility>

#include "src/base/log.h"
#include "src/base/scope_exit.h"
#include "src/bootstrap/stream_socket.h"

namespace catenary {
namespace {

// How long to wait for an answer that needs nobody but the root.
constexpr std::int64_t kAnswerMs = 250;
// Claims kept for who takes them. More are not kept: what they would prove stays unproven.
constexpr std::size_t kMaxHeldClaims = 256;

std::string seconds(std::int64_t ns) {
  const double value = static_cast<double>(ns) / 1e9;
  return format(value < 10 ? "%.1f s" : "%.0f s", value);
}

}  // namespace

RootLine::RootLine(ControlChannel channel, const JoinMessage& join, const std::string& root_address)
    : join_(join), root_address_(root_address), channel_(std::move(channel)) {
  channel_->send(join_.encode());
}

void RootLine::wait_for(const std::function<bool()>& reached, const Wait& wait,
                        std::string_view what) {
  const std::int64_t begin = now_ns();
  Lock lock(mutex_);
  while (true) {
    advance();
    if (fault_) throw Error(*fault_);
    if (reached()) return;
    if (!channel_) {
      throw_error(ErrorCode::kRemote,
                  "rank %d cannot wait for %s: the process of the root (%s) has left", join_.rank,
                  std::string(what).c_str(), root_.text().c_str());
    }
    if (wait.is_cancelled() || wait.deadline.passed()) {
      give_up(lock, wait, what, now_ns() - begin);
    }
    sleep(lock, wait);
  }
}

bool RootLine::wait_for_settled(std::uint32_t step, const Wait& wait) {
  Lock lock(mutex_);
  while (true) {
    advance();
    if (fault_ || !channel_ || settled_step_ >= step) return true;
    if (wait.is_cancelled() || wait.deadline.passed()) return false;
    sleep(lock, wait);
  }
}

// Until something comes from the root, or for a moment.
void RootLine::sleep(Lock& lock, const Wait& wait) {
  const int fd = channel_->fd();
  const auto events = static_cast<short>(POLLIN | (channel_->flush() ? 0 : POLLOUT));
  ++waiting_;
  lock.unlock();
  const ScopeExit back([&] {
    lock.lock();
    --waiting_;
  });
  wait_slice(fd, events, wait);
}

// Tells the others before it throws: they wait for the same thing, in vain from now on.
void RootLine::give_up(Lock& lock, const Wait& wait, std::string_view what,
                       std::int64_t waited_ns) {
  const std::string me = format("rank %d (%s)", join_.rank, join_.process.text().c_str());
  const std::string awaited(what);
  if (wait.is_cancelled()) {
    report_locked(Error(ErrorCode::kRemote, me + " aborted while it waited for " + awaited));
    throw_error(ErrorCode::kInvalidUsage, "rank %d: aborted while waiting for %s", join_.rank,
                awaited.c_str());
  }
  const MissingMessage missing = ask_who_is_missing(lock);
  if (fault_) throw Error(*fault_);
  std::string text = format("no answer from the root (%s) within %s", root_address_.c_str(),
                            seconds(waited_ns).c_str());
  if (!missing.ranks.empty()) {
    text = format("%s of %d did not come within %s", missing.ranks.c_str(), join_.nranks,
                  seconds(waited_ns).c_str());
  }
  if (!missing.why.empty()) text += "; " + missing.why;
  report_locked(Error(ErrorCode::kTimeout, me + " gave up waiting for " + awaited + ": " + text));
  throw_error(ErrorCode::kTimeout, "rank %d waited for %s: %s", join_.rank, awaited.c_str(),
              text.c_str());
}

MissingMessage RootLine::ask_who_is_missing(Lock& lock) {
  if (!ask_locked()) return {};
  const Wait wait = {Deadline::after_ms(kAnswerMs), nullptr};
  ++waiting_;
  while (channel_ && !missing_ && !fault_ && !wait.deadline.passed()) {
    const int fd = channel_->fd();
    lock.unlock();
    wait_slice(fd, POLLIN, wait);
    lock.lock();
    advance();
  }
  --waiting_;
  return missing_.value_or(MissingMessage{});
}

void RootLine::send(const Frame& frame) {
  const std::lock_guard lock(mutex_);
  if (channel_) channel_->send(frame);
}

std::optional<Error> RootLine::poll() {
  const std::lock_guard lock(mutex_);
  if (!fault_ && waiting_ == 0) advance();
  return fault_;
}

bool RootLine::has_left(int rank) {
  const std::lock_guard lock(mutex_);
  return left_ranks_.contains(rank);
}

bool RootLine::ask() {
  const std::lock_guard lock(mutex_);
  return ask_locked();
}

bool RootLine::ask_locked() {
  if (!channel_) return false;
  missing_.reset();
  channel_->send(Frame{MessageType::kQuery, {}});
  return true;
}

bool RootLine::is_answered() {
  const std::lock_guard lock(mutex_);
  return missing_ || !channel_;
}

bool RootLine::has_root() {
  const std::lock_guard lock(mutex_);
  return channel_.has_value();
}

bool RootLine::lives_with_root(int rank) {
  const std::lock_guard lock(mutex_);
  return root_ranks_.contains(rank);
}

std::string RootLine::root_text() {
  const std::lock_guard lock(mutex_);
  return root_text_locked();
}

std::string RootLine::root_text_locked() const {
  if (root_ranks_.empty()) return "the process of the root (" + root_.text() + ")";
  const std::vector<int> ranks(root_ranks_.begin(), root_ranks_.end());
  return name_ranks(ranks) + " (" + root_.text() + ")";
}

std::vector<ClaimMessage> RootLine::take_claims() {
  const std::lock_guard lock(mutex_);
  return std::exchange(claims_, {});
}

void RootLine::report(const Error& error) {
  const std::lock_guard lock(mutex_);
  report_locked(error);
}

void RootLine::report_locked(const Error& error) {
  if (!fault_) fault_ = error;
  if (fault_is_shared_ || !channel_ || left_) return;
  fault_is_shared_ = true;
  channel_->send(FaultMessage{error.code(), error.what()}.encode());
}

void RootLine::goodbye() noexcept {
  const std::lock_guard lock(mutex_);
  if (left_ || !channel_) return;
  advance();
  left_ = true;
  if (!channel_) return;
  channel_->send(Frame{MessageType::kLeave, {}});
  // If the root is a thread of this process, the process may be about to end and take the root with
  // it. The others must know by then that this rank left in peace.
  const Wait wait = {Deadline::after_ms(kAnswerMs), nullptr};
  const bool root_is_here = root_.token == join_.process.token;
  while (root_is_here && channel_ && !said_goodbye_ && !wait.deadline.passed()) {
    wait_slice(channel_->fd(), POLLIN, wait);
    advance();
  }
  channel_.reset();
}

void RootLine::expect_parts(std::uint32_t round) {
  const std::lock_guard lock(mutex_);
  round_ = round;
  parts_.clear();
}

void RootLine::advance() {
  if (!channel_) return;
  channel_->flush();
  while (const std::optional<Frame> frame = channel_->receive()) {
    if (accept(*frame)) continue;
    if (!fault_)
      fault_.emplace(ErrorCode::kInternal, "the root sent a message that makes no sense");
    channel_.reset();
    return;
  }
  if (channel_->broken() != nullptr) on_root_lost();
}

// False: the message makes no sense.
bool RootLine::accept(const Frame& frame) {
  switch (frame.type) {
    case MessageType::kRootRanks: {
      const auto message = RootRanksMessage::parse(frame.payload);
      if (!message) return false;
      root_ = message->process;
      root_ranks_.insert(message->ranks.begin(), message->ranks.end());
      return true;
    }
    case MessageType::kWelcome:
      if (welcome_) return false;
      welcome_ = WelcomeMessage::parse(frame.payload);
      return welcome_.has_value();
    case MessageType::kGathered: {
      auto message = GatheredMessage::parse(frame.payload);
      if (!message || message->round != round_) return false;
      if (static_cast<std::size_t>(message->first_rank) != parts_.size()) return false;
      for (Bytes& part : message->parts) parts_.push_back(std::move(part));
      return parts_.size() <= static_cast<std::size_t>(join_.nranks);
    }
    case MessageType::kFault: {
      const auto message = FaultMessage::parse(frame.payload);
      if (!message) return false;
      if (!fault_) fault_.emplace(message->code, message->text);
      fault_is_shared_ = true;
      return true;
    }
    case MessageType::kMissing: {
      const auto message = MissingMessage::parse(frame.payload);
      missing_ = message;
      return message.has_value();
    }
    case MessageType::kLeft: {
      const auto message = LeftMessage::parse(frame.payload);
      if (!message) return false;
      root_ranks_.erase(message->rank);
      left_ranks_.insert(message->rank);
      return true;
    }
    case MessageType::kSettled: {
      const auto message = SettledMessage::parse(frame.payload);
      if (!message) return false;
      settled_step_ = message->step;
      return true;
    }
    case MessageType::kGoodbye: return said_goodbye_ = true;
    case MessageType::kClaim: {
      auto message = ClaimMessage::parse(frame.payload);
      if (!message || message->rank >= join_.nranks || message->rank == join_.rank) return false;
      if (claims_.size() < kMaxHeldClaims) claims_.push_back(std::move(*message));
      return true;
    }
    case MessageType::kJoin:
    case MessageType::kGather:
    case MessageType::kQuery:
    case MessageType::kLeave: return false;
  }
  return false;
}

// The root's process has ended, or cannot be reached any more; with it the ranks that lived there.
void RootLine::on_root_lost() {
  const bool closed = channel_->closed_by_peer();
  const std::string reason =
      closed ? " ended unexpectedly" : " cannot be reached any more: " + *channel_->broken();
  channel_.reset();
  if (left_ || fault_) return;
  if (root_.token == join_.process.token) {
    fault_.emplace(ErrorCode::kSystem, "the root service of this process has ended" +
                                           (closed ? std::string() : reason));
  } else if (!root_ranks_.empty()) {
    fault_.emplace(ErrorCode::kRemote, root_text_locked() + reason);
  } else if (!welcome_) {
    fault_.emplace(ErrorCode::kRemote, "the process of the root (" +
                                           (root_.host.empty() ? root_address_ : root_.text()) +
                                           ")" + reason + " while the communicator was being made");
  } else {
    log_info(Subsystem::kBootstrap, -1,
             format("rank %d: the process of the root (%s), where the id was made, has ended. None "
                    "of its ranks is left; from now on who dies is noticed only by who waits for "
                    "that rank, where the system tells",
                    join_.rank, root_.text().c_str()));
  }
}

}  // namespace catenary
