#include "src/transport/link_handshake.h"

#include <cerrno>
#include <cstring>

#include "src/base/error.h"

namespace catenary {
namespace {

std::string purpose_of(const LinkIntroduction& link) {
  return format("link from %u to %u channel %u", link.from, link.to, link.channel);
}

ByteView as_view(const LinkIntroduction& introduction) {
  return std::as_bytes(std::span(&introduction, 1));
}

}  // namespace

LinkHandshake::LinkHandshake(const Key& key, Side side) : key_(key), side_(side) {}

LinkHandshake LinkHandshake::initiate(const Key& key, const LinkIntroduction& introduction) {
  LinkHandshake handshake(key, Side::kInitiator);
  handshake.introduction_ = introduction;
  handshake.purpose_ = purpose_of(introduction);
  handshake.initiator_ = sealed_nonce(key, handshake.purpose_);
  handshake.say(as_view(introduction));
  handshake.say(make_greeting(Side::kInitiator, handshake.initiator_));
  handshake.await(Awaited::kGreeting, sizeof(Greeting));
  return handshake;
}

LinkHandshake LinkHandshake::accept(const Key& key, int self, int nranks) {
  LinkHandshake handshake(key, Side::kAcceptor);
  fill_random(handshake.acceptor_);
  handshake.self_ = static_cast<std::uint32_t>(self);
  handshake.nranks_ = static_cast<std::uint32_t>(nranks);
  handshake.await(Awaited::kIntroduction, sizeof(LinkIntroduction) + sizeof(Greeting));
  return handshake;
}

LinkHandshake::State LinkHandshake::advance(int fd) {
  while (true) {
    if (const State state = flush(fd); state != State::kDone) return state;
    if (awaited_ == Awaited::kNothing) return State::kDone;
    if (const State state = fill(fd); state != State::kDone) return state;
    if (!take_message()) return State::kFailed;
  }
}

LinkHandshake::State LinkHandshake::flush(int fd) {
  while (sent_ < outgoing_.size()) {
    const Transfer transfer = try_send(fd, ByteView(outgoing_).subspan(sent_));
    switch (transfer.state) {
      case Transfer::State::kMoved: sent_ += transfer.bytes; break;
      case Transfer::State::kNotYet: return State::kBusy;
      case Transfer::State::kClosed:
      case Transfer::State::kBroken: return fail(transfer);
    }
  }
  return State::kDone;
}

LinkHandshake::State LinkHandshake::fill(int fd) {
  while (received_ < incoming_.size()) {
    const Transfer transfer = try_receive(fd, ByteSpan(incoming_).subspan(received_));
    switch (transfer.state) {
      case Transfer::State::kMoved: received_ += transfer.bytes; break;
      case Transfer::State::kNotYet: return State::kBusy;
      case Transfer::State::kClosed:
      case Transfer::State::kBroken: return fail(transfer);
    }
  }
  return State::kDone;
}

bool LinkHandshake::take_message() {
  switch (awaited_) {
    case Awaited::kIntroduction: return take_introduction();
    case Awaited::kGreeting: return take_greeting();
    case Awaited::kProof: return take_proof();
    case Awaited::kNothing: break;
  }
  return true;
}

bool LinkHandshake::take_introduction() {
  std::memcpy(&introduction_, incoming_.data(), sizeof introduction_);
  const auto nonce =
      parse_greeting(Side::kInitiator, ByteView(incoming_).subspan(sizeof introduction_));
  if (!nonce || introduction_.to != self_ || introduction_.from >= nranks_ ||
      introduction_.channel >= kChannelCount)
    return refuse("it speaks another protocol");
  initiator_ = *nonce;
  purpose_ = purpose_of(introduction_);
  if (!is_sealed(initiator_, key_, purpose_)) return refuse("it does not hold our key");
  say(make_greeting(Side::kAcceptor, acceptor_));
  await(Awaited::kProof, sizeof(Mac));
  return true;
}

bool LinkHandshake::take_greeting() {
  const auto nonce = parse_greeting(Side::kAcceptor, incoming_);
  if (!nonce) return refuse("it speaks another protocol");
  acceptor_ = *nonce;
  say(handshake().proof(Side::kInitiator));
  await(Awaited::kProof, sizeof(Mac));
  return true;
}

bool LinkHandshake::take_proof() {
  const bool accepts = side_ == Side::kAcceptor;
  if (!equal_secrets(incoming_, handshake().proof(accepts ? Side::kInitiator : Side::kAcceptor)))
    return refuse("it does not hold our key");
  if (accepts) say(handshake().proof(Side::kAcceptor));
  await(Awaited::kNothing, 0);
  return true;
}

Handshake LinkHandshake::handshake() const { return {key_, purpose_, initiator_, acceptor_}; }

void LinkHandshake::say(ByteView bytes) {
  outgoing_.insert(outgoing_.end(), bytes.begin(), bytes.end());
}

void LinkHandshake::await(Awaited what, std::size_t bytes) {
  awaited_ = what;
  incoming_.assign(bytes, std::byte{0});
  received_ = 0;
}

LinkHandshake::State LinkHandshake::fail(const Transfer& transfer) {
  const int error_number = transfer.error_number;
  cut_ = transfer.state == Transfer::State::kClosed || error_number == ECONNRESET ||
         error_number == EPIPE;
  if (!cut_) return fail(errno_text(error_number));
  return fail("it closed the connection: it does not hold our key, or is gone");
}

bool LinkHandshake::refuse(const char* why) {
  fail(why);
  refused_ = true;
  return false;
}

LinkHandshake::State LinkHandshake::fail(std::string why) {
  failure_ = std::move(why);
  return State::kFailed;
}

}  // namespace catenary
