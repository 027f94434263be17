// ShortRun: what is left of a short operation that was begun at once and has to wait, mostly for a
// message.
//
// A run that could do anything takes as long to be made, begun and ended as the message takes to
// come. This one goes on with the short steps, or takes the one message of a receive, and nothing
// else. Whatever is out of the ordinary is for a run like any other, which then takes its place:
// the slow look, and a message that is not the expected one.
//
// A communicator has one, as nothing is begun at once behind something that waits.
//
// Threads: begin() under the issue lock and the drive lock; the rest by who drives. Nothing waits.
// Failure: poll() and check() throw what links and runs throw.
#pragma once

#include <cstdint>

#include "src/engine/group_run.h"
#include "src/engine/short_steps.h"

namespace catenary {

class ShortRun final : public Task {
 public:
  explicit ShortRun(RunOwner& owner) : owner_(owner) {}

  // Whether it is between two lives.
  bool is_free() const { return turn_ == nullptr; }
  // The steps of the lane `spec`, of which so many are done; takes the next of the turns.
  void begin(const RunSpec& spec, const ShortSteps& steps, const void* input, void* output,
             Turn& turn);
  // A receive, for which the caller writes the whole spec; takes the next of the turns.
  MessageSpec& begin_receive(Turn& turn);

  Progress poll() override;
  void check() override;
  bool fail(const std::exception& error) noexcept override;
  Wakers wakers() override { return owner_.wakers(); }
  void recycle() noexcept override;

 private:
  bool try_go_on();
  bool try_receive();
  void become_full();

  RunOwner& owner_;
  Turn* turn_ = nullptr;  // null between lives
  std::uint64_t ticket_ = 0;
  bool is_message_ = false;
  bool met_another_ = false;  // a message, but not the expected one
  // Of a collective, kept for the next life, which is mostly like it.
  RunSpec spec_;
  ShortSteps steps_;
  const void* input_ = nullptr;
  void* output_ = nullptr;
  MessageSpec message_;  // of a receive
  GroupRun full_;        // in its place
  bool is_full_ = false;
};

}  // namespace catenary
