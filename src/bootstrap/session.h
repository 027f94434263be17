// Session: the root's side of one communicator: who has come, what is being gathered, what broke.
//
// Lives on the root service's thread, and only there. Nothing waits: frames are queued on the
// members' channels. The service owns the channels and tells of every one that ends; a session owns
// nothing but its state. Faults of members are states and messages to the others, never exceptions.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/base/clock.h"
#include "src/base/types.h"
#include "src/bootstrap/channel.h"
#include "src/bootstrap/message.h"

namespace catenary {

class Session {
 public:
  // `late_ms`: how long a session that failed before it was complete keeps telling late comers so.
  Session(int nranks, std::int64_t late_ms);

  bool has(int rank) const { return is_rank(rank) && at(rank).state != State::kAwaited; }
  bool is_open() const { return !complete_ && !fault_; }
  // Whether a rank that comes now belongs here: it is awaited, if only to be told of the failure.
  bool awaits(int rank) const { return !complete_ && !has(rank); }
  int nranks() const { return static_cast<int>(members_.size()); }
  const ProcessName& process_of(int rank) const { return at(rank).process; }

  // A newcomer. Returns whether it now is the member `join.rank`; if not, it was told why.
  bool join(ControlChannel& channel, const JoinMessage& join);
  // A second process claims a rank that is already here: an error for everyone.
  void refuse_duplicate(ControlChannel& channel, const JoinMessage& join);

  // A frame of a member. False: it makes no sense, the connection should end.
  bool receive(int rank, const Frame& frame);
  // A member wants to know whom it waits for.
  void answer_query(int rank, const std::string& why);
  // A member's channel ended, and will be destroyed.
  void lost(int rank);

  // Says once in the log whom those who are here have waited for for some time.
  void tell_of_late_ranks();

  // Nobody is connected, and nobody is to be told anything any more.
  bool is_over() const;

 private:
  enum class State { kAwaited, kHere, kLeft, kLost };
  struct Member {
    State state = State::kAwaited;
    ControlChannel* channel = nullptr;  // null once lost
    ProcessName process;
    std::optional<Bytes> part;  // of the all-gather that is going on
    bool with_root = false;     // lives in this process
    std::uint32_t step = 0;     // that it has settled
  };

  bool is_rank(int rank) const { return rank >= 0 && rank < nranks(); }
  Member& at(int rank) { return members_[static_cast<std::size_t>(rank)]; }
  const Member& at(int rank) const { return members_[static_cast<std::size_t>(rank)]; }
  std::string name(int rank) const;

  std::string objection(const JoinMessage& join) const;
  void tell_root_ranks(int newcomer);
  bool gather(int rank, const Frame& frame);
  bool claim(int rank, const Frame& frame);
  bool settle(int rank, const Frame& frame);
  void tell_settled();
  void finish_gather();
  void leave(int rank);
  std::vector<int> missing() const;
  void fail(ErrorCode code, const std::string& text);
  static constexpr std::int64_t kPatience_ms = 10'000;
  void tell_all(const Frame& frame, int except = kNobody);

  const ProcessName root_ = ProcessName::mine();
  const std::int64_t late_ms_;
  std::vector<Member> members_;
  int awaited_;
  int connected_ = 0;
  int here_ = 0;                 // connected, and not about to leave
  std::vector<int> root_ranks_;  // of those here, the ones in this process
  bool complete_ = false;

  std::uint32_t round_ = 0;
  int parts_ = 0;

  std::deque<Bytes> told_claims_;   // the last few
  std::uint32_t settled_step_ = 0;  // by all who are here
  std::optional<FaultMessage> fault_;
  Deadline late_ = Deadline::never();
  Deadline next_word_ = Deadline::after_ms(kPatience_ms);  // about late ranks
};

}  // namespace catenary
