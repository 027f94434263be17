// The part of PutHub that gives its port what is to go out.
#include <cstring>

#include "src/transport/put_hub.h"
#include "src/transport/put_words.h"

namespace catenary {

void PutHub::push() {
  must_push_ = !push_controls();
  for (auto& [number, outgoing] : outgoing_) must_push_ |= !push_messages(outgoing);
  for (auto& [number, incoming] : incoming_) must_push_ |= !push_credit(incoming);
}

// These return whether the port took all that there was.
bool PutHub::push_controls() {
  if (!failure_.empty()) controls_.clear();
  // Several may go round: a peer whose connection is being made must not hold up the others.
  for (std::size_t left = controls_.size(); left > 0; --left) {
    const auto next = controls_.front();
    controls_.pop_front();
    if (!port_->try_send(next.first, next.second)) controls_.push_back(next);
  }
  return controls_.empty();
}

bool PutHub::push_messages(Outgoing& outgoing) {
  if (!outgoing.ring || !outgoing.failure.empty()) return true;
  while (outgoing.put != outgoing.committed) {
    if (!push_next_message(outgoing)) return false;
    ++outgoing.put;
  }
  return true;
}

bool PutHub::push_next_message(Outgoing& outgoing) {
  const std::uint64_t slot = outgoing.put % context_.slots;
  const std::size_t at = slot * stride_ + kHeaderOffset;
  std::byte* const begin = outgoing.staging.data() + at;
  MessageHeader header;
  std::memcpy(&header, begin, sizeof header);
  const auto other_way = incoming_.find(link_number(outgoing.spec));
  Incoming* const owed = other_way == incoming_.end() ? nullptr : &other_way->second;
  if (owed != nullptr) header.credit = static_cast<std::uint32_t>(owed->released - owed->credited);
  header.check = check_of(header);
  std::memcpy(begin, &header, sizeof header);
  PutFlight& flight = outgoing.slots[slot];
  const std::size_t whole = sizeof header + (header.bytes & ~kBodyApart);
  const std::size_t head = whole - flight.in_place.size();
  const bool body_apart = (header.bytes & kBodyApart) != 0;
  // The peer knows the link by who sends on it.
  const auto self = static_cast<std::uint32_t>(context_.rank);
  const auto channel = static_cast<std::uint32_t>(outgoing.spec.channel);
  const std::uint32_t told = message_word(link_number(self, channel), outgoing.put, context_.slots);
  const std::uint32_t cookie =
      message_word(link_number(outgoing.spec), outgoing.put, context_.slots);
  const auto try_put = [&](std::uint32_t word, std::size_t skip, PutPiece first, PutPiece second) {
    const PutTarget target = {outgoing.ring->address + at + skip, outgoing.ring->keys};
    if (!port_->try_put({outgoing.spec.peer, first, second, target, word, cookie})) return false;
    ++flight.flying;
    ++outgoing.flights;
    return true;
  };
  const PutPiece body = {flight.memory.get(), flight.in_place};
  if (body_apart && !flight.body_is_put) {
    flight.body_is_put = try_put(told | kIsBody, head, body, {});
    if (!flight.body_is_put) return false;
  }
  const PutPiece begins = {outgoing.memory.get(), {begin, head}};
  flight.head_is_put = try_put(told, 0, begins, body_apart ? PutPiece() : body);
  if (flight.head_is_put && owed != nullptr) owed->credited = owed->released;
  return flight.head_is_put;
}

bool PutHub::push_credit(Incoming& incoming) {
  if (is_leaving_ || incoming.memory == nullptr || !incoming.owes_credit(context_.slots)) {
    return true;
  }
  const auto slots = static_cast<std::uint32_t>(incoming.released - incoming.credited);
  Put put;
  put.peer = incoming.spec.peer;
  put.head = {words_memory_.get(), {words_.data(), kCreditBytes}};
  put.target = incoming.credits_go;
  const auto self = static_cast<std::uint32_t>(context_.rank);
  put.told =
      credit_word(link_number(self, static_cast<std::uint32_t>(incoming.spec.channel)), slots);
  put.cookie = credit_word(link_number(incoming.spec), slots);
  if (!port_->try_put(put)) return false;
  incoming.credited = incoming.released;
  return true;
}

}  // namespace catenary
