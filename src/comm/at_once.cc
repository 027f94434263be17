// The part of Communicator that begins operations at once, without a run, as far as that goes
// (short_steps.h). What is left then waits (short_run.h), or a run is made of it.
//
// What is over is as if a run had done it in its first poll: the turn has come and gone, the stream
// counts a task. All is under the issue lock and the drive lock together, so that nobody sees
// anything in between. Only where peers ring: other links get nowhere unless they are polled.

#include <algorithm>
#include <type_traits>

#include "src/comm/communicator.h"
#include "src/engine/short_steps.h"

namespace catenary {
namespace {

using SendEnd = MessageIssuer::SendEnd;
using RecvEnd = MessageIssuer::RecvEnd;

ByteSpan data_of(const MessageRequest& message) {
  return {static_cast<std::byte*>(message.buffer), message.count * element_bytes(message.type)};
}

// What is done takes the next turn, which is over with it.
void pass(Turn& turn) {
  turn.take();
  ++turn.serving;
}

}  // namespace

// What the kinds of them have in common. A kind says:
//   bool is_idle() const         whether nothing is before it
//   bool try_all()               passes the turns of what it has done
//   void ring_peers() noexcept   of what is done; a link that has thrown is not used again
// and if that was not all:
//   TaskPtr rest()               what is left
//   bool waits() const           whether there was nothing to be seen of what is next
template <typename Kind>
class Communicator::AtOnce : public Beginning {
 public:
  AtOnce(Communicator& communicator, const Requests& requests)
      : communicator_(communicator), requests_(requests) {}

  Rest begin() override {
    Communicator& self = communicator_;
    // Something is before it, or something is wrong: a run finds out what.
    const bool may_begin = kind().is_idle() && !self.in_trouble_.load(std::memory_order_acquire);
    if (!may_begin) return {self.task_for(requests_, 0)};
    bool is_all_done = false;
    try {
      is_all_done = kind().try_all();
    } catch (const std::exception& error) {
      has_thrown_ = true;
      return rest_after(error);
    }
    if (!is_all_done) return {.task = kind().rest(), .waits = kind().waits()};
    self.polled(true);
    return {};
  }
  void tell_peers() noexcept override { kind().ring_peers(); }

 protected:
  ~AtOnce() = default;
  Communicator& communicator() { return communicator_; }
  bool has_thrown() const { return has_thrown_; }
  TaskPtr rest_of(const Requests& requests, std::size_t steps_done = 0) {
    return communicator_.task_for(requests, steps_done);
  }
  // Null: a run has to do what is left.
  ShortRun* short_rest() const {
    ShortRun& rest = communicator_.short_run_;
    CATENARY_ASSERT(rest.is_free());  // else something would be before this
    return has_thrown_ ? nullptr : &rest;
  }
  // It has begun.
  TaskPtr begun(ShortRun& rest) {
    count_up(communicator_.runs_begun_);
    return TaskPtr(&rest);
  }
  TaskPtr rest_of(const MessageRequest& receive, RecvEnd& end) {
    ShortRun* const rest = short_rest();
    if (rest == nullptr) return rest_of({{}, {&receive, 1}});
    communicator_.messages_->fill_lone_receive(rest->begin_receive(end.turn), receive, end);
    return begun(*rest);
  }
  const Requests& requests() const { return requests_; }

 private:
  Kind& kind() { return static_cast<Kind&>(*this); }
  // As if the run had met it: who is at fault may show in a moment, until when the run is polled.
  Rest rest_after(const std::exception& error) {
    TaskPtr task = kind().rest();
    if (task->fail(error)) task.reset();
    return {.task = std::move(task), .waits = true};
  }

  Communicator& communicator_;
  const Requests& requests_;
  bool has_thrown_ = false;
};

class Communicator::CollectiveAtOnce final : public AtOnce<CollectiveAtOnce> {
 public:
  CollectiveAtOnce(Communicator& communicator, const Requests& requests, Recipe& recipe)
      : AtOnce(communicator, requests),
        turn_(communicator.collective_turn_),
        spec_(recipe.specs[0]),
        steps_(recipe.short_steps) {
    const OperationRequest& request = requests.operations.front();
    steps_.begin(request.input, request.output, static_cast<std::uint32_t>(turn_.taken));
  }

  bool is_idle() const { return turn_.idle(); }
  void ring_peers() noexcept { steps_.ring_peers(0, has_thrown()); }
  bool try_all() {
    communicator().begins(steps_.descriptor());
    steps_.try_do();
    if (!steps_.all_done()) return false;
    pass(turn_);
    return true;
  }
  TaskPtr rest() {
    ShortRun* const rest = waits() ? short_rest() : nullptr;
    if (rest == nullptr) return rest_of(requests(), steps_.done());
    const OperationRequest& request = requests().operations.front();
    rest->begin(spec_, steps_, request.input, request.output, turn_);
    return begun(*rest);
  }
  bool waits() const { return !steps_.met_another(); }

 private:
  Turn& turn_;
  const RunSpec& spec_;
  ShortSteps& steps_;
};

// A send or a receive. `End` is that of the link to or from the peer.
template <typename End>
class Communicator::ShortMessageEnd {
 public:
  ShortMessageEnd(const MessageRequest& message, End& end)
      : data_(data_of(message)),
        opening_(opening_of(message, end.turn.taken)),
        turn_(end.turn),
        link_(*end.link) {}

  bool is_idle() const { return turn_.idle(); }
  bool is_done() const { return is_done_; }
  bool met_another() const { return met_another_; }
  bool try_do() {
    is_done_ = try_move(link_);
    if (is_done_) pass(turn_);
    return is_done_;
  }
  void ring_peer() noexcept {
    if (is_done_) link_.ring_lightly();
  }

 private:
  bool try_move(SendLink& link) { return send_short(link, opening_, data_); }
  bool try_move(RecvLink& link) {
    const ShortMessage come = keep_short(link, opening_, data_);
    met_another_ = come.is_another;
    if (come.data == nullptr) return false;
    link.release_quietly();
    return true;
  }

  const ByteSpan data_;
  const Descriptor opening_;
  Turn& turn_;
  decltype(*End::link) link_;
  bool is_done_ = false;
  bool met_another_ = false;
};

template <typename End>
class Communicator::MessageAtOnce final : public AtOnce<MessageAtOnce<End>> {
 public:
  MessageAtOnce(Communicator& communicator, const Requests& requests, End& end)
      : AtOnce<MessageAtOnce>(communicator, requests),
        end_(end),
        message_(requests.messages.front(), end) {}

  bool is_idle() const { return message_.is_idle(); }
  void ring_peers() noexcept { message_.ring_peer(); }
  bool try_all() { return message_.try_do(); }
  TaskPtr rest() {
    if constexpr (std::is_same_v<End, RecvEnd>) {
      if (waits()) return this->rest_of(this->requests().messages.front(), end_);
    }
    return this->rest_of(this->requests());
  }
  bool waits() const { return !message_.met_another(); }

 private:
  End& end_;
  ShortMessageEnd<End> message_;
};

// A group of a send and a receive, of which the send goes first, whatever their order.
class Communicator::ExchangeAtOnce final : public AtOnce<ExchangeAtOnce> {
 public:
  ExchangeAtOnce(Communicator& communicator, const Requests& requests, const MessageRequest& send,
                 SendEnd& to, const MessageRequest& receive, RecvEnd& from)
      : AtOnce(communicator, requests),
        receive_request_(receive),
        from_(from),
        send_(send, to),
        receive_(receive, from) {}

  bool is_idle() const { return send_.is_idle() && receive_.is_idle(); }
  void ring_peers() noexcept {
    send_.ring_peer();
    receive_.ring_peer();
  }
  bool try_all() { return send_.try_do() && receive_.try_do(); }
  TaskPtr rest() {
    if (waits()) return rest_of(receive_request_, from_);
    return rest_of(send_.is_done() ? Requests{{}, {&receive_request_, 1}} : requests());
  }
  bool waits() const { return send_.is_done() && !receive_.met_another(); }

 private:
  const MessageRequest& receive_request_;
  RecvEnd& from_;
  ShortMessageEnd<SendEnd> send_;
  ShortMessageEnd<RecvEnd> receive_;
};

bool Communicator::try_at_once(const Requests& requests) {
  if (!polled_.empty()) return false;
  const std::size_t messages = requests.messages.size();
  if (requests.operations.empty()) {
    return messages == 1 ? try_message(requests) : messages == 2 ? try_exchange(requests) : false;
  }
  return requests.size() == 1 && try_collective(requests);
}

bool Communicator::try_collective(const Requests& requests) {
  const OperationRequest& request = requests.operations.front();
  if (!Recipe::is_repeatable(request)) return false;
  Recipe& recipe = recipe_for(request);
  if (!recipe.short_steps) return false;
  const std::size_t longest = recipe.short_steps.longest_bytes();
  const bool may_lend =
      longest >= recipe.specs[0].least_loan &&
      (may_be_lent(request.input, longest) || may_be_lent(request.output, longest));
  if (may_lend && !(recipe.short_steps.go_one_way() && runs_ahead())) return false;
  recipe.prepare();
  CollectiveAtOnce at_once(*this, requests, recipe);
  return device_.executor().try_at_once(*request.stream, at_once);
}

// Only what is one slice to whoever cuts it.
bool Communicator::is_short(const MessageRequest& message) const {
  const std::size_t bytes = data_of(message).size();
  if (bytes > kMostAtOnce || message.peer == rank_) return false;
  return plans_->message_cut(bytes).slice_bytes >= bytes;
}

bool Communicator::would_lend(const MessageRequest& send) const {
  const std::size_t bytes = data_of(send).size();
  return bytes >= least_loan_ && may_be_lent(send.buffer, bytes);
}

// Whether peers can read it there, or have the kernel do so.
bool Communicator::may_be_lent(const void* memory, std::size_t bytes) const {
  return bytes >= least_fetched_ || heap_.holds({static_cast<const std::byte*>(memory), 1});
}

// Who lends waits for the reader. So who only sends, and goes on, had better copy what is as short
// as that; he does go on, unless he waits each time all the same. (Two times, since some wait after
// every so many.) Who receives does as he does, and so mostly expects what comes. To be asked once
// for each of them.
bool Communicator::runs_ahead() {
  constexpr int kEnough = 2;
  const std::uint64_t returns = device_.executor().returns();
  waited_in_a_row_ = returns != returns_seen_ ? std::min(waited_in_a_row_ + 1, kEnough) : 0;
  returns_seen_ = returns;
  return waited_in_a_row_ < kEnough;
}

// The end of a link that a short message can be sent on: it has been used, and needs no polls. It
// is prepared for that. Or null.
SendEnd* Communicator::end_for_short(const MessageRequest& send) {
  SendEnd& end = messages_->send_end(send.peer);
  if (end.link == nullptr || !end.link->is_flushed_by_commit()) return nullptr;
  end.link->prepare(opened_bytes(data_of(send).size()));
  return &end;
}

bool Communicator::try_message(const Requests& requests) {
  const MessageRequest& message = requests.messages.front();
  if (!is_short(message)) return false;
  Executor& executor = device_.executor();
  if (message.sends) {
    if (would_lend(message) && !runs_ahead()) return false;
    SendEnd* const end = end_for_short(message);
    if (end == nullptr) return false;
    MessageAtOnce at_once(*this, requests, *end);
    return executor.try_at_once(*message.stream, at_once);
  }
  RecvEnd& end = messages_->recv_end(message.peer);
  if (end.link == nullptr) return false;
  MessageAtOnce at_once(*this, requests, end);
  return executor.try_at_once(*message.stream, at_once);
}

bool Communicator::try_exchange(const Requests& requests) {
  const bool send_first = requests.messages.front().sends;
  const MessageRequest& send = requests.messages[send_first ? 0 : 1];
  const MessageRequest& receive = requests.messages[send_first ? 1 : 0];
  if (!send.sends || receive.sends || send.stream != receive.stream) return false;
  if (!is_short(send) || !is_short(receive) || would_lend(send)) return false;
  RecvEnd& from = messages_->recv_end(receive.peer);
  if (from.link == nullptr) return false;
  SendEnd* const to = end_for_short(send);
  if (to == nullptr) return false;
  ExchangeAtOnce at_once(*this, requests, send, *to, receive, from);
  return device_.executor().try_at_once(*send.stream, at_once);
}

}  // namespace catenary
