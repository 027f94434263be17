#include "src/engine/short_run.h"

#include "src/base/scope_exit.h"

namespace catenary {

void ShortRun::begin(const RunSpec& spec, const ShortSteps& steps, const void* input, void* output,
                     Turn& turn) {
  if (spec.stamp == 0 || spec_.stamp != spec.stamp) {
    spec_.stamp = 0;  // in case this throws
    steps_ = steps;
    spec_ = spec;
  }
  turn_ = &turn;
  ticket_ = turn.take();
  input_ = input;
  output_ = output;
  steps_.begin(input, output, static_cast<std::uint32_t>(ticket_));
  steps_.skip(steps.done());
  is_message_ = is_full_ = met_another_ = false;
}

MessageSpec& ShortRun::begin_receive(Turn& turn) {
  turn_ = &turn;
  ticket_ = turn.take();
  is_message_ = true;
  is_full_ = met_another_ = false;
  return message_;
}

Task::Progress ShortRun::poll() {
  if (is_full_) return full_.poll();
  if (!owner_.may_go_on()) return Progress::kNone;
  const bool moved = is_message_ ? try_receive() : try_go_on();
  if (met_another_) {
    become_full();
    return full_.poll();
  }
  owner_.polled(moved);
  if (!moved) return Progress::kNone;
  if (!is_message_ && !steps_.all_done()) return Progress::kSome;
  ++turn_->serving;
  return Progress::kDone;
}

// Whether it has got on. What was done before a link throws has been sent, and is told.
bool ShortRun::try_go_on() {
  const std::size_t before = steps_.done();
  bool has_thrown = true;
  const ScopeExit ring([&] {
    if (steps_.done() > before) steps_.ring_peers(before, has_thrown);
  });
  steps_.try_do();
  has_thrown = false;
  met_another_ = steps_.met_another();
  return steps_.done() > before;
}

bool ShortRun::try_receive() {
  const ShortMessage come =
      keep_short(*message_.recv, message_.descriptor, {message_.output, message_.bytes});
  met_another_ = come.is_another;
  if (come.data == nullptr) return false;
  message_.recv->release_quietly();
  message_.recv->ring_lightly();
  return true;
}

void ShortRun::become_full() {
  full_.begin(owner_);
  if (is_message_) {
    full_.add_message(*turn_, ticket_, {}) = message_;
  } else {
    full_.add({.spec = spec_,
               .input = input_,
               .output = output_,
               .turn = *turn_,
               .ticket = ticket_,
               .steps_done = steps_.done()});
  }
  is_full_ = true;
}

// A run knows whom it waits for once it has been polled. It says again that it is done if it is.
void ShortRun::check() {
  if (!is_full_) {
    become_full();
    full_.poll();
  }
  full_.check();
}

// Nothing of it is lent, and nobody writes to its output.
bool ShortRun::fail(const std::exception& error) noexcept {
  return is_full_ ? full_.fail(error) : owner_.run_failed(error);
}

// The owner may be gone afterwards, and this with it.
void ShortRun::recycle() noexcept {
  if (is_full_) full_.end();
  turn_ = nullptr;
  owner_.short_run_over();
}

}  // namespace catenary
