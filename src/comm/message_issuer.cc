#include "src/comm/message_issuer.h"

#include <algorithm>

#include "src/base/error.h"
#include "src/engine/framing.h"

namespace catenary {
namespace {

std::byte* bytes_of(const MessageRequest& message) {
  return static_cast<std::byte*>(message.buffer);
}

}  // namespace

MessageIssuer::MessageIssuer(const MessageTerms& terms, LinkTable& links, PlanCache& plans,
                             StoreChoice& stores)
    : terms_(terms),
      links_(links),
      plans_(plans),
      stores_(stores),
      send_ends_(static_cast<std::size_t>(terms.nranks)),
      recv_ends_(static_cast<std::size_t>(terms.nranks)) {}

// A group is mostly like the one before, and its messages need not be made again.
void MessageIssuer::add(std::span<const MessageRequest> messages, GroupRun& run) {
  if (messages.size() == 1) {
    add_new(messages, traits_of(messages), run);
    return;
  }
  const auto renew = [&](MessageSpec& spec, const GroupRun::MadeOf& made_of) {
    if (spec.recv == nullptr) spec.input = bytes_of(messages[made_of.send]);
    if (spec.send == nullptr) set_output(spec, messages[made_of.receive], last_group_);
    if (spec.send != nullptr) prepare_for_run(*spec.send, spec.bytes);
  };
  if (are_like_last(messages) && run.repeat_messages(stamp_, renew)) return;
  last_group_ = traits_of(messages);
  add_new(messages, last_group_, run);
  run.stamp_messages(stamp_);
}

// Whether they ask for the same as the last ones, if with other buffers. Else they are the last
// ones from now on.
bool MessageIssuer::are_like_last(std::span<const MessageRequest> messages) {
  const auto is_like = [](const MessageRequest& one, const MessageRequest& other) {
    return one.count == other.count && one.peer == other.peer && one.type == other.type &&
           one.sends == other.sends;
  };
  if (std::ranges::equal(messages, last_messages_, is_like)) return true;
  last_messages_.assign(messages.begin(), messages.end());
  ++stamp_;
  return false;
}

// First what others wait for; then one's own copies, which need nobody; last what comes from
// others.
void MessageIssuer::add_new(std::span<const MessageRequest> messages, const GroupTraits& group,
                            GroupRun& run) {
  own_sends_.clear();
  const auto size = static_cast<std::uint32_t>(messages.size());
  run.expect_messages(messages.size(), group.some_are_long);
  for (std::uint32_t i = 0; i < size; ++i) {
    if (!messages[i].sends) continue;
    if (messages[i].peer == terms_.rank) {
      own_sends_.push_back(i);
    } else {
      add_send(messages[i], {.send = i}, group, run);
    }
  }
  std::size_t own_receives = 0;
  for (std::uint32_t i = 0; i < size; ++i) {
    if (messages[i].sends || messages[i].peer != terms_.rank) continue;
    const std::uint32_t send = own_sends_[own_receives++];
    add_own(messages[send], messages[i], {.send = send, .receive = i}, group, run);
  }
  for (std::uint32_t i = 0; i < size; ++i) {
    if (messages[i].sends || messages[i].peer == terms_.rank) continue;
    add_receive(messages[i], {.receive = i}, group, run);
  }
}

// What moves at a time is what the caches have to hold, as in a collective that moves as much.
MessageIssuer::GroupTraits MessageIssuer::traits_of(
    std::span<const MessageRequest> messages) const {
  GroupTraits group;
  std::size_t sent = 0;
  std::size_t received = 0;
  for (const MessageRequest& message : messages) {
    const std::size_t bytes = message.count * element_bytes(message.type);
    (message.sends ? sent : received) += bytes;
    group.some_are_long = group.some_are_long || bytes >= RecvLink::kLeastCopiedTogether;
    group.receives = group.receives || (!message.sends && message.peer != terms_.rank);
  }
  group.copies_exceed_caches = stores_.copies_exceed_caches(std::max(sent, received));
  group.touched_bytes = static_cast<std::size_t>(terms_.nranks) * (sent + received);
  return group;
}

// Where a group only sends, a send that its link can hold is over once it does, received or not:
// programs count on that, which send to each other before any of them receives. Where it receives
// as well, its peers may have to wait for that.
void MessageIssuer::add_send(const MessageRequest& message, GroupRun::MadeOf made_of,
                             const GroupTraits& group, GroupRun& run) {
  SendEnd& end = send_end(message.peer);
  if (end.link == nullptr) end.link = &links_.send_link(message.peer, Channel::kPointToPoint);
  prepare_for_run(*end.link, message.count * element_bytes(message.type));
  MessageSpec& spec = run.add_message(end.turn, made_of);
  fill(spec, end.turn, message, group);
  spec.send = end.link;
  spec.input = bytes_of(message);
  const std::size_t held = spec.slice_bytes * terms_.slots;
  if (group.receives || spec.bytes > held) {
    spec.fetching = stores_.fetching(spec.bytes, spec.past_caches, !group.receives);
  }
}

void MessageIssuer::add_receive(const MessageRequest& message, GroupRun::MadeOf made_of,
                                const GroupTraits& group, GroupRun& run) {
  RecvEnd& end = recv_end(message.peer);
  if (end.link == nullptr) end.link = &links_.recv_link(message.peer, Channel::kPointToPoint);
  fill_receive(run.add_message(end.turn, made_of), message, end, group);
}

// Whose turn was taken for it.
void MessageIssuer::fill_receive(MessageSpec& spec, const MessageRequest& message,
                                 const RecvEnd& end, const GroupTraits& group) {
  fill(spec, end.turn, message, group);
  spec.recv = end.link;
  set_output(spec, message, group);
}

// check() has made sure that each has its other half in the same group: together they are a copy.
void MessageIssuer::add_own(const MessageRequest& send, const MessageRequest& receive,
                            GroupRun::MadeOf made_of, const GroupTraits& group, GroupRun& run) {
  Turn& turn = recv_end(terms_.rank).turn;
  MessageSpec& spec = run.add_message(turn, made_of);
  fill(spec, turn, receive, group);
  spec.input = bytes_of(send);
  set_output(spec, receive, group);
  if (send.type == receive.type && send.count == receive.count) return;
  Descriptor taken = spec.descriptor;
  taken.kind = Collective::kRecv;
  Descriptor sent = spec.descriptor;
  sent.type = send.type;
  sent.count = send.count;
  throw_error(ErrorCode::kInvalidUsage, "ranks do not agree: rank %d runs %s, but also %s",
              terms_.rank, describe(taken).c_str(), describe(sent).c_str());
}

void MessageIssuer::set_output(MessageSpec& spec, const MessageRequest& message,
                               const GroupTraits& group) {
  spec.output = bytes_of(message);
  const ByteView output(spec.output, spec.bytes);
  spec.past_caches =
      group.copies_exceed_caches && !stores_.fit_if_lent(output, group.touched_bytes);
  if (spec.past_caches || spec.bytes < RecentOutputs::kLeastBytes) return;
  spec.past_caches = !stores_.was_there(output, 2 * spec.bytes);
}

// All but where it goes. `turn` was taken for it.
inline void MessageIssuer::fill(MessageSpec& spec, const Turn& turn, const MessageRequest& message,
                                const GroupTraits& group) {
  const std::size_t bytes = message.count * element_bytes(message.type);
  spec.send = nullptr;
  spec.recv = nullptr;
  spec.input = nullptr;
  spec.output = nullptr;
  spec.bytes = bytes;
  spec.slice_bytes = plans_.message_cut(bytes).slice_bytes;
  spec.least_loan = terms_.least_loan;
  spec.descriptor = opening_of(message, turn.taken - 1);
  spec.rank = terms_.rank;
  spec.peer = message.peer;
  spec.past_caches = group.copies_exceed_caches;
}

}  // namespace catenary
