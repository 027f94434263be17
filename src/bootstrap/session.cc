#include "src/bootstrap/session.h"

#include <algorithm>

#include "src/base/log.h"

namespace catenary {
namespace {

constexpr std::size_t kRememberedClaims = 16;

}  // namespace

Session::Session(int nranks, std::int64_t late_ms)
    : late_ms_(late_ms), members_(static_cast<std::size_t>(nranks)), awaited_(nranks) {}

std::string Session::name(int rank) const {
  return format("rank %d (%s)", rank, at(rank).process.text().c_str());
}

bool Session::join(ControlChannel& channel, const JoinMessage& join) {
  if (const std::string text = objection(join); !text.empty()) {
    fail(ErrorCode::kInvalidArgument, text);
  }
  if (!is_rank(join.rank)) {
    channel.send(fault_->encode());
    return false;
  }
  Member& member = at(join.rank);
  member = {
      State::kHere, &channel, join.process, std::nullopt, join.process.token == root_.token, 0};
  --awaited_;
  ++connected_;
  ++here_;
  if (member.with_root) root_ranks_.push_back(join.rank);
  if (fault_) {
    channel.send(fault_->encode());
    return true;
  }
  tell_root_ranks(join.rank);
  if (awaited_ == 0) {
    complete_ = true;
    tell_all(WelcomeMessage{random_key()}.encode());
  }
  return true;
}

// Why the newcomer does not fit to those who are here; "" if it does.
std::string Session::objection(const JoinMessage& join) const {
  if (fault_) return "";
  const std::string newcomer = format("rank %d (%s)", join.rank, join.process.text().c_str());
  if (join.version != library_version()) {
    return format(
        "Mismatched NCCL version detected : %s runs version %u of the library, the root (%s) "
        "version %u",
        newcomer.c_str(), join.version, root_.text().c_str(), library_version());
  }
  if (join.nranks == nranks()) return "";
  for (int rank = 0; rank < nranks(); ++rank) {
    if (at(rank).state != State::kHere) continue;
    return format("ranks disagree: %s says that the communicator has %d ranks, %s says %d",
                  newcomer.c_str(), join.nranks, name(rank).c_str(), nranks());
  }
  return format("ranks disagree: %s says that the communicator has %d ranks, others say %d",
                newcomer.c_str(), join.nranks, nranks());
}

void Session::refuse_duplicate(ControlChannel& channel, const JoinMessage& join) {
  fail(ErrorCode::kInvalidArgument,
       format("two processes claim rank %d: %s and %s", join.rank,
              at(join.rank).process.text().c_str(), join.process.text().c_str()));
  channel.send(fault_->encode());
}

// The newcomer learns which ranks share the root's fate; if it is one itself, the others learn
// that.
void Session::tell_root_ranks(int newcomer) {
  at(newcomer).channel->send(RootRanksMessage{root_, root_ranks_}.encode());
  if (!at(newcomer).with_root) return;
  const auto frame = std::make_shared<const Frame>(RootRanksMessage{root_, {newcomer}}.encode());
  for (int rank = 0; rank < nranks(); ++rank) {
    if (rank != newcomer && at(rank).state == State::kHere) at(rank).channel->send(frame);
  }
}

bool Session::receive(int rank, const Frame& frame) {
  switch (frame.type) {
    case MessageType::kGather: return gather(rank, frame);
    case MessageType::kFault: {
      const auto fault = FaultMessage::parse(frame.payload);
      if (!fault) return false;
      fail(fault->code, fault->text);
      return true;
    }
    case MessageType::kClaim: return claim(rank, frame);
    case MessageType::kSettled: return settle(rank, frame);
    case MessageType::kLeave: leave(rank); return true;
    case MessageType::kQuery:
    case MessageType::kJoin:
    case MessageType::kRootRanks:
    case MessageType::kWelcome:
    case MessageType::kGathered:
    case MessageType::kMissing:
    case MessageType::kLeft:
    case MessageType::kGoodbye: return false;
  }
  return false;
}

void Session::answer_query(int rank, const std::string& why) {
  const std::vector<int> awaited = missing();
  at(rank).channel->send(
      MissingMessage{awaited.empty() ? "" : name_ranks(awaited), complete_ ? "" : why}.encode());
}

void Session::tell_of_late_ranks() {
  if (!is_open() || here_ == 0 || !next_word_.passed()) return;
  next_word_ = Deadline::never();
  log_notice(-1,
             format("%d of %d ranks are here and have waited for %s for %lld s", here_, nranks(),
                    name_ranks(missing()).c_str(), static_cast<long long>(kPatience_ms / 1000)));
}

bool Session::gather(int rank, const Frame& frame) {
  const auto message = GatherMessage::parse(frame.payload);
  if (!message || !complete_ || message->round != round_ || at(rank).part) return false;
  if (fault_) return true;
  at(rank).part.emplace(message->part.begin(), message->part.end());
  ++parts_;
  for (int other = 0; here_ < nranks() && other < nranks(); ++other) {
    if (at(other).state == State::kHere || at(other).part) continue;
    fail(ErrorCode::kRemote, format("%s left the communicator, but rank %d still exchanges with it",
                                    name(other).c_str(), rank));
    return true;
  }
  if (parts_ == nranks()) finish_gather();
  return true;
}

void Session::finish_gather() {
  std::vector<Bytes> parts;
  for (Member& member : members_) {
    parts.push_back(std::move(*member.part));
    member.part.reset();
  }
  for (Frame& frame : encode_gathered(round_, parts)) tell_all(frame);
  ++round_;
  parts_ = 0;
}

// Everybody compares what is claimed with the same thing of its own. So what equals a claim that
// all have heard is no news, and ranks that wait for one and the same cost one round, not one each.
bool Session::claim(int rank, const Frame& frame) {
  const auto message = ClaimMessage::parse(frame.payload);
  if (!message || !complete_ || message->rank != rank) return false;
  if (fault_ || std::ranges::find(told_claims_, message->claim) != told_claims_.end()) return true;
  told_claims_.push_back(message->claim);
  if (told_claims_.size() > kRememberedClaims) told_claims_.pop_front();
  tell_all(frame, rank);
  return true;
}

bool Session::settle(int rank, const Frame& frame) {
  const auto message = SettledMessage::parse(frame.payload);
  if (!message || !complete_ || message->step < at(rank).step) return false;
  at(rank).step = message->step;
  tell_settled();
  return true;
}

// Nobody waits for who has left.
void Session::tell_settled() {
  std::optional<std::uint32_t> least;
  for (const Member& member : members_) {
    if (member.state == State::kHere) least = std::min(least.value_or(member.step), member.step);
  }
  if (!least || *least <= settled_step_) return;
  settled_step_ = *least;
  tell_all(SettledMessage{settled_step_}.encode());
}

void Session::leave(int rank) {
  Member& member = at(rank);
  if (member.state != State::kHere) return;
  member.state = State::kLeft;
  --here_;
  if (!complete_) {
    fail(ErrorCode::kRemote, name(rank) + " left before all ranks had come");
  } else if (parts_ > 0 && !member.part) {
    fail(ErrorCode::kRemote,
         name(rank) + " left the communicator, but others still exchange with it");
  }
  tell_all(LeftMessage{rank}.encode());
  tell_settled();
  if (!member.with_root) return;
  std::erase(root_ranks_, rank);
  member.channel->send(Frame{MessageType::kGoodbye, {}});
}

void Session::lost(int rank) {
  Member& member = at(rank);
  const bool unexpected = member.state == State::kHere;
  const std::string reason = member.channel->closed_by_peer() || member.channel->broken() == nullptr
                                 ? " ended unexpectedly"
                                 : " cannot be reached any more: " + *member.channel->broken();
  member.channel = nullptr;
  --connected_;
  if (!unexpected) return;
  --here_;
  member.state = State::kLost;
  fail(ErrorCode::kRemote, name(rank) + reason);
}

std::vector<int> Session::missing() const {
  std::vector<int> ranks;
  for (int rank = 0; rank < nranks(); ++rank) {
    const Member& member = at(rank);
    const bool awaited = complete_ ? parts_ > 0 && !member.part : member.state == State::kAwaited;
    if (awaited) ranks.push_back(rank);
  }
  return ranks;
}

// The first fault is the communicator's; what follows from it is no news.
void Session::fail(ErrorCode code, const std::string& text) {
  if (fault_) return;
  fault_ = FaultMessage{code, text};
  late_ = Deadline::after_ms(late_ms_);
  log_info(Subsystem::kBootstrap, -1,
           "A communicator of " + std::to_string(nranks()) + " ranks failed: " + text);
  tell_all(fault_->encode());
}

// Members of this process come last: if one of them exits on what it hears, it takes the root
// along, and the others must have heard by then.
void Session::tell_all(const Frame& frame, int except) {
  const auto shared = std::make_shared<const Frame>(frame);
  for (const bool with_root : {false, true}) {
    for (int rank = 0; rank < nranks(); ++rank) {
      const Member& member = at(rank);
      if (rank == except || member.state != State::kHere || member.with_root != with_root) continue;
      member.channel->send(shared);
    }
  }
}

bool Session::is_over() const {
  if (connected_ > 0) return false;
  if (complete_ || awaited_ == 0) return true;
  return fault_ && late_.passed();
}

}  // namespace catenary
