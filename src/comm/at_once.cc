// The part of Communicator that begins operations at once, without a run, as far as that goes
// (short_steps.h). A run is made of what is left.
//
// What is over is as if a run had done it in its first poll: the turn has come and gone, the stream
// counts a task. All is under the issue lock and the drive lock together, so that nobody sees
// anything in between. Only where peers ring: other links get nowhere unless they are polled.

#include "src/comm/communicator.h"
#include "src/engine/short_steps.h"

namespace catenary {
namespace {

ByteSpan data_of(const MessageRequest& message) {
  return {static_cast<std::byte*>(message.buffer), message.count * element_bytes(message.type)};
}

}  // namespace

// A single operation, which takes the next of its turns. What kinds of them have in common.
class Communicator::AtOnce : public Beginning {
 public:
  AtOnce(Communicator& communicator, const Requests& requests, Turn& turn)
      : communicator_(communicator), requests_(requests), turn_(turn) {}

  Rest begin() override {
    Communicator& self = communicator_;
    // Something is before it, or something is wrong: a run finds out what.
    const bool may_begin = turn_.idle() && !self.in_trouble_.load(std::memory_order_acquire);
    if (!may_begin) return {self.task_for(requests_, 0)};
    try {
      is_all_done_ = try_all();
    } catch (const std::exception& error) {
      has_thrown_ = true;
      return rest_after(error);
    }
    if (!is_all_done_) return {self.task_for(requests_, steps_done()), waits()};
    turn_.take();
    ++turn_.serving;
    self.polled(true);
    return {};
  }
  // A link that has thrown is not used again.
  void tell_peers() noexcept override {
    if (!has_thrown_) ring_peers();
  }

 protected:
  ~AtOnce() = default;
  Communicator& communicator() { return communicator_; }
  bool is_all_done() const { return is_all_done_; }

 private:
  virtual bool try_all() = 0;
  virtual void ring_peers() noexcept = 0;
  // If that was not all: how far it went, and whether there was nothing to be seen of what is next.
  virtual std::size_t steps_done() const { return 0; }
  virtual bool waits() const { return true; }
  // As if the run had met it: who is at fault may show in a moment, until when the run is polled.
  Rest rest_after(const std::exception& error) {
    TaskPtr task = communicator_.task_for(requests_, steps_done());
    if (task->fail(error)) task.reset();
    return {std::move(task), true};
  }

  Communicator& communicator_;
  const Requests& requests_;
  Turn& turn_;
  bool is_all_done_ = false;
  bool has_thrown_ = false;
};

class Communicator::CollectiveAtOnce final : public AtOnce {
 public:
  CollectiveAtOnce(Communicator& communicator, const Requests& requests, ShortSteps& steps)
      : AtOnce(communicator, requests, communicator.collective_turn_), steps_(steps) {
    const OperationRequest& request = requests.operations.front();
    steps_.begin(request.input, request.output,
                 static_cast<std::uint32_t>(communicator.collective_turn_.taken));
  }

 private:
  void ring_peers() noexcept override { steps_.ring_peers(); }
  bool try_all() override {
    communicator().begins(steps_.descriptor());
    steps_.try_do();
    return steps_.all_done();
  }
  std::size_t steps_done() const override { return steps_.done(); }
  bool waits() const override { return !steps_.met_another(); }

  ShortSteps& steps_;
};

// `End` is that of the link to or from the peer.
template <typename End>
class Communicator::MessageAtOnce final : public AtOnce {
 public:
  MessageAtOnce(Communicator& communicator, const Requests& requests, End& end)
      : AtOnce(communicator, requests, end.turn),
        data_(data_of(requests.messages.front())),
        opening_(opening_of(requests.messages.front(), end.turn.taken)),
        link_(*end.link) {}

 private:
  void ring_peers() noexcept override {
    if (is_all_done()) link_.ring_after_fence();
  }
  bool try_all() override { return try_move(link_); }
  bool try_move(SendLink& link) { return send_short(link, opening_, data_); }
  bool try_move(RecvLink& link) {
    const ShortMessage come = peek_short(link, opening_, data_.size());
    met_another_ = come.is_another;
    if (come.data == nullptr) return false;
    keep_short(link, data_.data(), {come.data, data_.size()});
    link.release_quietly();
    return true;
  }
  bool waits() const override { return !met_another_; }

  const ByteSpan data_;
  const Descriptor opening_;
  decltype(*End::link) link_;
  bool met_another_ = false;
};

bool Communicator::try_at_once(const Requests& requests) {
  if (requests.size() != 1 || !polled_.empty()) return false;
  return requests.messages.empty() ? try_collective(requests) : try_message(requests);
}

bool Communicator::try_collective(const Requests& requests) {
  const OperationRequest& request = requests.operations.front();
  if (!Recipe::is_repeatable(request)) return false;
  Recipe& recipe = recipe_for(request);
  ShortSteps& steps = recipe.short_steps;
  if (!steps) return false;
  if (recipe.opens_on != nullptr) recipe.opens_on->prepare();
  CollectiveAtOnce at_once(*this, requests, steps);
  return device_.executor().try_at_once(*request.stream, at_once);
}

// Only what is one slice to whoever cuts it.
bool Communicator::try_message(const Requests& requests) {
  const MessageRequest& message = requests.messages.front();
  const std::size_t bytes = data_of(message).size();
  if (bytes > kMostAtOnce || bytes >= least_loan_ || message.peer == rank_) return false;
  if (plans_->message_cut(bytes).slice_bytes < bytes) return false;
  const auto peer = static_cast<std::size_t>(message.peer);
  if (message.sends) {
    SendEnd& end = send_ends_[peer];
    if (end.link == nullptr || !end.link->is_flushed_by_commit()) return false;
    if (bytes <= kOneLineDataBytes) end.link->prepare();
    MessageAtOnce at_once(*this, requests, end);
    return device_.executor().try_at_once(*message.stream, at_once);
  }
  RecvEnd& end = recv_ends_[peer];
  if (end.link == nullptr) return false;
  MessageAtOnce at_once(*this, requests, end);
  return device_.executor().try_at_once(*message.stream, at_once);
}

}  // namespace catenary
