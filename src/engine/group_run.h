// GroupRun: the operations of one communicator that were submitted together, as one task of a
// stream.
//
// Its runs advance side by side, so that sends and receives of a group never wait for each other's
// order. What must keep an order has turns: collectives of a communicator go one after the other in
// the order of issue, and so do the sends to one peer and the receives from one peer.
// A send keeps its turn until its buffer is free, since a link knows only that of all it was given.
//
// Threads: poll(), check() and fail() by whoever drives the device. Owner: the stream, then the
// communicator's pool again, which outlives it. Failure: the first throw ends all runs, and the
// communicator is told.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <vector>

#include "src/base/clock.h"
#include "src/base/doorbell.h"
#include "src/device/task.h"
#include "src/engine/message_run.h"
#include "src/engine/schedule_run.h"

namespace catenary {

// Tickets for something that one run at a time may use. take() under the communicator's issue lock,
// the rest by the driver.
struct Turn {
  std::uint64_t taken = 0;
  std::uint64_t serving = 0;
  std::uint64_t take() { return taken++; }
  bool idle() const { return serving == taken; }
};

// What a group run needs from the communicator whose operations it carries.
class RunOwner {
 public:
  // Throws the communicator's failure, if it has one. False: it is failing, and until it knows why,
  // in a moment, nothing of it goes on.
  bool may_go_on() {
    return !in_trouble_.load(std::memory_order_acquire) || may_go_on_in_trouble();
  }
  // The slow look, on behalf of a run that does not get on: abort, peers' deaths and reports, and
  // peers that run something else.
  virtual void check_peers(const class GroupRun& run) = 0;
  // Moves bytes of the transports that need it; whether any have moved, though perhaps no message
  // has come or gone.
  virtual bool poll_transports() = 0;
  // What tells when a peer did something.
  virtual Task::Wakers wakers() = 0;
  // A collective is about to begin, its turn having come.
  virtual void begins(const Descriptor& descriptor) noexcept = 0;
  // A run was polled, and got on or not.
  void polled(bool moved) noexcept { moves_ += moved ? 1 : 0; }
  // A run threw: becomes the communicator's failure unless it already has one. False: once it is
  // known why, which may_go_on() tells.
  virtual bool run_failed(const std::exception& error) noexcept = 0;
  // Whether it is, or may be: then a run is not to go on for long.
  bool is_in_trouble() const noexcept { return in_trouble_.load(std::memory_order_relaxed); }
  // Whether a thread waits, and could as well copy what a peer is copying. The device's own thread
  // has no core to itself.
  virtual bool has_time() const noexcept = 0;
  // Peers may write to the output of one collective or receive more, or less; by who drives.
  void opens_to_writers(int more) noexcept {
    open_to_writers_.store(open_to_writers_.load(std::memory_order_relaxed) + more,
                           std::memory_order_release);
  }
  // The group run is over, well or not, and may be used again.
  virtual void run_over(class GroupRun& run) noexcept = 0;
  // A ShortRun is.
  virtual void short_run_over() noexcept = 0;

 protected:
  ~RunOwner() = default;
  // What may_go_on() gives once in_trouble_ is set, which stays.
  virtual bool may_go_on_in_trouble() = 0;

  std::atomic<bool> in_trouble_{false};  // it has failed, or may have
  std::uint64_t moves_ = 0;              // how often a run got on; by who drives
  std::atomic<int> open_to_writers_{0};
};

class GroupRun final : public Task {
 public:
  // Begins a new life, which `owner` outlives.
  void begin(RunOwner& owner) {
    owner_ = &owner;
    withdrawn_.reset();
    open_.clear();
    count_ = 0;
    open_messages_.clear();
    message_count_ = 0;
    some_are_long_ = false;
  }
  // One of the lanes of a collective. They share its ticket, which is also its sequence, and are
  // added one after the other.
  struct Lane {
    const RunSpec& spec;
    const void* input;
    void* output;
    Turn& turn;
    std::uint64_t ticket;
    int lanes = 1;               // of that collective
    std::size_t steps_done = 0;  // already
  };
  void add(const Lane& lane);
  // The requests that a message was made of, by numbers of the caller's: one, or both if it is to
  // oneself.
  struct MadeOf {
    std::uint32_t send = 0;
    std::uint32_t receive = 0;
  };
  // A send, a receive, or a message to oneself, which takes its turn: the caller is to write the
  // whole spec, as groups hold many of these.
  MessageSpec& add_message(Turn& turn, MadeOf requests) {
    return add_message(turn, turn.take(), requests);
  }
  // The same with a turn that was taken.
  MessageSpec& add_message(Turn& turn, std::uint64_t ticket, MadeOf requests) {
    stamp_ = 0;
    open_messages_.push_back(static_cast<std::uint32_t>(message_count_));
    if (message_count_ == messages_.size()) messages_.emplace_back();
    Message& added = messages_[message_count_++];
    added.turn = &turn;
    added.ticket = ticket;
    added.made_of = requests;
    added.over = added.counted = false;
    return added.run.begin();
  }
  // So many are about to be added, and some of them are long enough that peers may copy together.
  void expect_messages(std::size_t count, bool some_are_long) {
    some_are_long_ = some_are_long;
    messages_.reserve(count);
    open_messages_.reserve(count);
  }
  // The messages of this life and of any other with that stamp, which is not 0, differ in buffers
  // and turns only.
  void stamp_messages(std::uint64_t stamp) {
    stamp_ = stamp;
    stamped_ = message_count_;
    stamped_are_long_ = some_are_long_;
  }
  // At the beginning of a life, if an earlier one had that stamp: its messages again, each of which
  // takes its turn. `renew` is told their specs and requests.
  template <typename Renew>
  bool repeat_messages(std::uint64_t stamp, Renew&& renew) {
    if (stamp_ != stamp) return false;
    some_are_long_ = stamped_are_long_;
    for (message_count_ = 0; message_count_ < stamped_; ++message_count_) {
      Message& message = messages_[message_count_];
      open_messages_.push_back(static_cast<std::uint32_t>(message_count_));
      message.ticket = message.turn->take();
      message.over = message.counted = false;
      MessageSpec& spec = message.run.begin();
      spec.descriptor.sequence = static_cast<std::uint32_t>(message.ticket);
      renew(spec, message.made_of);
    }
    return true;
  }

  // Memory that it keeps for its next life, and is.
  std::size_t held_bytes() const {
    return sizeof *this + members_.capacity() * sizeof(Member) +
           messages_.capacity() * sizeof(Message) +
           (open_.capacity() + open_messages_.capacity()) * sizeof(std::uint32_t);
  }

  Progress poll() override;
  void check() override;
  bool fail(const std::exception& error) noexcept override;
  Wakers wakers() override { return owner_->wakers(); }
  void recycle() noexcept override;
  // What recycling does before the owner is told: for whom has one as a member.
  void end() noexcept;

  // How often it was polled, in this life and earlier ones.
  std::uint64_t polls() const { return polls_; }
  // What this group waits in: a collective that may run, else a message, one that is not yet moved
  // before others. None between lives.
  struct Waiting {
    Descriptor in;
    int on = kNobody;
    bool only_to_be_taken = false;  // all is done, and peers only have to take what was sent
  };
  std::optional<Waiting> waiting() const;
  // The collective that it waits in; one at a time may run in a communicator. Null: none.
  const ScheduleRun* waiting_collective() const;

 private:
  struct Member {
    ScheduleRun run;
    Turn* turn = nullptr;
    std::uint64_t ticket = 0;
    int lanes = 1;
    bool over = false;
  };
  struct Message {
    MessageRun run;
    Turn* turn = nullptr;
    std::uint64_t ticket = 0;
    MadeOf made_of;
    bool over = false;
    bool counted = false;  // as open to writers
  };

  Progress poll_runs();
  Progress poll_transports();
  bool poll_members();
  bool poll_messages();
  void count(Message& message, bool is_open);
  const Message* waiting_message() const;
  void drop_what_is_over();
  bool is_taken_back() noexcept;
  int writer() const noexcept;
  void forbid_writers() noexcept;
  bool help();
  bool help_somebody();
  void withdraw() noexcept;
  bool has_open_lane(std::size_t index) const;
  template <typename Queued>
  static bool is_on_turn(const Queued& queued) {
    return queued.turn->serving == queued.ticket;
  }

  RunOwner* owner_ = nullptr;
  // The first `count_` take part in this life. They stay for the next one, which is mostly like it.
  std::vector<Member> members_;
  std::size_t count_ = 0;
  std::vector<std::uint32_t> open_;  // those not over, in the order in which they were added
  std::vector<Message> messages_;    // likewise
  std::size_t message_count_ = 0;
  std::vector<std::uint32_t> open_messages_;
  bool some_are_long_ = false;
  std::size_t next_helped_ = 0;  // where in open_messages_ the next to be helped is
  std::uint64_t stamp_ = 0;      // of what is in messages_; 0: none
  std::size_t stamped_ = 0;      // so many of messages_
  bool stamped_are_long_ = false;
  std::uint64_t polls_ = 0;
  std::optional<Deadline> withdrawn_;  // until then peers that write are waited for
};

}  // namespace catenary
