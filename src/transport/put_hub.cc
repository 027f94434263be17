#include "src/transport/put_hub.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "src/base/error.h"
#include "src/base/fence.h"
#include "src/base/refusals.h"
#include "src/transport/put_words.h"

namespace catenary {

class PutHub::HubSendLink final : public SendLink {
 public:
  HubSendLink(PutHub& hub, Outgoing& state) : hub_(hub), state_(state) {}

  ByteSpan try_acquire(std::size_t bytes) override {
    CATENARY_ASSERT(bytes != 0 && bytes <= hub_.context_.slot_bytes);
    const std::lock_guard lock(hub_.mutex_);
    throw_if_failed();
    const std::uint64_t slot = state_.committed % hub_.context_.slots;
    const bool is_free = state_.committed - state_.credited < hub_.context_.slots;
    if (!is_free || state_.slots[slot].flying > 0) return {};
    return {state_.staging.data() + slot * hub_.stride_ + kDataOffset, bytes};
  }

  void commit(std::size_t bytes) override {
    const std::lock_guard lock(hub_.mutex_);
    publish(bytes);
  }

  // What the port is done with needs us no more, until this rank leaves (try_drain).
  bool try_flush() override {
    const std::lock_guard lock(hub_.mutex_);
    throw_if_failed();
    return state_.put == state_.committed && state_.flights == 0;
  }

  bool sends_in_place(ByteView memory) override {
    const std::lock_guard lock(hub_.mutex_);
    if (!hub_.failure_.empty()) return false;
    return !hub_.port_->registers_sources() || hub_.registrations_.find(memory) != nullptr;
  }
  void commit_in_place(std::size_t skip, ByteView memory) override {
    const std::lock_guard lock(hub_.mutex_);
    const std::uint64_t slot = state_.committed % hub_.context_.slots;
    PutFlight& flight = state_.slots[slot];
    const bool must_be_registered = hub_.port_->registers_sources();
    if (must_be_registered && hub_.failure_.empty()) {
      flight.memory = hub_.registrations_.find(memory);
    }
    if (must_be_registered && flight.memory == nullptr) {
      // Another thread has taken back what it had announced of it.
      std::byte* const data = state_.staging.data() + slot * hub_.stride_ + kDataOffset;
      std::memcpy(data + skip, memory.data(), memory.size());
    } else {
      flight.in_place = memory;
    }
    publish(skip + memory.size());
  }
  void withdraw() noexcept override {
    const std::lock_guard lock(hub_.mutex_);
    const bool is_in_place = std::ranges::any_of(
        state_.slots, [](const PutFlight& flight) { return !flight.in_place.empty(); });
    if (is_in_place) hub_.give_up();
  }

 private:
  void publish(std::size_t bytes) {
    CATENARY_ASSERT(bytes != 0 && bytes <= hub_.context_.slot_bytes);
    const std::uint64_t slot = state_.committed % hub_.context_.slots;
    const bool body_apart = !state_.slots[slot].in_place.empty() && !hub_.port_->gathers();
    const auto count = static_cast<std::uint32_t>(bytes) | (body_apart ? kBodyApart : 0);
    const MessageHeader header = {state_.committed, count, 0, 0};  // the rest as it goes out
    std::memcpy(state_.staging.data() + slot * hub_.stride_ + kHeaderOffset, &header,
                sizeof header);
    ++state_.committed;
    if (!hub_.push_messages(state_)) hub_.must_push_ = true;
  }

  void throw_if_failed() const {
    if (!state_.failure.empty())
      throw LostConnection(hub_.context_.rank, state_.spec.peer, state_.failure);
  }

  PutHub& hub_;
  Outgoing& state_;
};

class PutHub::HubRecvLink final : public RecvLink {
 public:
  HubRecvLink(PutHub& hub, Incoming& state) : hub_(hub), state_(state) {}

  ByteView try_peek() override {
    const std::lock_guard lock(hub_.mutex_);
    const std::uint64_t slot = state_.released % hub_.context_.slots;
    if (state_.memory == nullptr || !state_.arrivals[slot].is_here) {
      if (!state_.failure.empty())
        throw LostConnection(hub_.context_.rank, state_.spec.peer, state_.failure);
      return {};
    }
    const std::byte* const begin = state_.ring.data() + slot * hub_.stride_;
    std::uint32_t bytes = 0;  // was checked when it came
    std::memcpy(&bytes, begin + kHeaderOffset + offsetof(MessageHeader, bytes), sizeof bytes);
    const std::size_t length = bytes & ~kBodyApart;
    return {begin + kDataOffset, std::min(length, hub_.context_.slot_bytes)};
  }

  void release() override {
    const std::lock_guard lock(hub_.mutex_);
    state_.arrivals[state_.released % hub_.context_.slots] = {};
    ++state_.released;
    if (!hub_.push_credit(state_)) hub_.must_push_ = true;
  }

 private:
  PutHub& hub_;
  Incoming& state_;
};

PutHub::PutHub(std::unique_ptr<PutPort> port, const TransportContext& context)
    : context_(context),
      stride_(kDataOffset + context.slot_bytes),
      port_(std::move(port)),
      words_(Mapping::anonymous(kWordsBytes)),
      registrations_(*port_, context.find_block) {
  if (static_cast<std::uint32_t>(context.nranks) > kMostLinks / kChannelCount) {
    throw_error(ErrorCode::kInvalidUsage, "%d ranks are more than a link number can tell",
                context.nranks);
  }
  CATENARY_ASSERT(context.slots <= kMostSlots);
  words_memory_ = port_->register_memory(ByteSpan(words_.data(), kWordsBytes));
  enlist(true);
}

// Nothing may come into memory that is given back.
PutHub::~PutHub() {
  enlist(false);
  const bool knows_nobody = incoming_.empty() && outgoing_.empty();
  port_->shut(has_parted_ || knows_nobody ? Parting::kInPeace : Parting::kInTheMiddle);
}

std::unique_ptr<SendLink> PutHub::connect(const LinkSpec& spec) {
  const std::lock_guard lock(mutex_);
  if (outgoing_.contains(link_number(spec))) {
    throw_error(ErrorCode::kInternal, "channel %d of the link to rank %d was made before",
                static_cast<int>(spec.channel), spec.peer);
  }
  Outgoing made;
  made.spec = spec;
  made.staging = Mapping::anonymous(context_.slots * stride_);
  if (failure_.empty()) {  // else the port may be gone, and its links throw when they are used
    made.memory = port_->register_memory({made.staging.data(), made.staging.bytes()});
  }
  made.slots.resize(context_.slots);
  made.failure = failure_;
  Outgoing& outgoing = outgoing_.emplace(link_number(spec), std::move(made)).first->second;
  ask_for_ring(outgoing);
  return std::make_unique<HubSendLink>(*this, outgoing);
}

void PutHub::ask_for_ring(const Outgoing& outgoing) {
  PutTarget credits = words_memory_->target();
  credits.address += kCreditsComeTo;
  say(ControlKind::kOpen, outgoing.spec, {.target = credits});
}

std::unique_ptr<RecvLink> PutHub::listen(const LinkSpec& spec) {
  const std::lock_guard lock(mutex_);
  Incoming& incoming = incoming_of(link_number(spec));
  if (incoming.is_listened) {
    throw_error(ErrorCode::kInternal, "channel %d of the link from rank %d was made before",
                static_cast<int>(spec.channel), spec.peer);
  }
  incoming.is_listened = true;
  return std::make_unique<HubRecvLink>(*this, incoming);
}

bool PutHub::has_come(const LinkSpec& spec) {
  const std::lock_guard lock(mutex_);
  const auto incoming = incoming_.find(link_number(spec));
  return incoming != incoming_.end() && incoming->second.memory != nullptr;
}

bool PutHub::has_heard_of(int peer) {
  const std::lock_guard lock(mutex_);
  for (int channel = 0; channel < kChannelCount; ++channel) {
    const LinkSpec spec = {peer, static_cast<Channel>(channel)};
    const auto outgoing = outgoing_.find(link_number(spec));
    if (outgoing != outgoing_.end() && outgoing->second.ring) return true;
    const auto incoming = incoming_.find(link_number(spec));
    if (incoming != incoming_.end() && incoming->second.memory != nullptr) return true;
  }
  return false;
}

bool PutHub::poll() {
  const std::lock_guard lock(mutex_);
  if (failure_.empty()) move();
  return std::exchange(was_told_anything_, false);
}

// What the port has not taken yet it takes when it likes, and tells nobody.
int PutHub::wait_descriptor() {
  const std::lock_guard lock(mutex_);
  return must_push_ || !failure_.empty() ? -1 : port_->wait_descriptor();
}

void PutHub::check_sent() {
  const std::lock_guard lock(mutex_);
  for (const auto& [number, outgoing] : outgoing_) {
    if (outgoing.failure.empty()) continue;
    if (outgoing.has_lost || outgoing.put != outgoing.committed)
      throw LostConnection(context_.rank, outgoing.spec.peer, outgoing.failure);
  }
}

// What a port has told before it throws is lost with it.
void PutHub::move() {
  try {
    port_->progress(*this);
    if (must_push_) push();
  } catch (const Error& error) {
    port_failed(error.what());
    throw;
  }
}

PutHub::Incoming& PutHub::incoming_of(std::uint32_t link) {
  Incoming& incoming = incoming_[link];
  incoming.spec = {static_cast<int>(link / kChannelCount),
                   static_cast<Channel>(link % kChannelCount)};
  if (incoming.failure.empty()) incoming.failure = failure_;
  return incoming;
}

void PutHub::put_done(std::uint64_t cookie) {
  was_told_anything_ = true;
  if (cookie & kIsCredit) return;
  const auto outgoing = outgoing_.find(static_cast<std::uint32_t>(cookie) >> kLowBits);
  if (outgoing == outgoing_.end()) return;
  --outgoing->second.flights;
  PutFlight& flight = outgoing->second.slots[cookie & kSlotMask];
  if (--flight.flying == 0 && flight.head_is_put) flight = {};
}

void PutHub::put_failed(std::uint64_t cookie, const std::string& why) {
  const auto word = static_cast<std::uint32_t>(cookie);
  const std::uint32_t link = link_of(word);
  if ((word & kIsCredit) == 0) {
    put_done(cookie);
    if (const auto sent = outgoing_.find(link); sent != outgoing_.end())
      sent->second.has_lost = true;
  }
  control_failed(static_cast<int>(link / kChannelCount), why);
}

void PutHub::control_failed(int peer, const std::string& why) {
  was_told_anything_ = true;  // runs that are polled again will see it
  for (auto& [number, outgoing] : outgoing_) {
    if (outgoing.spec.peer == peer && outgoing.failure.empty()) outgoing.failure = why;
  }
  // Who has left closes its end, and that harms nothing.
  for (auto& [number, incoming] : incoming_) {
    const bool lacks_nothing = incoming.sent_in_all && incoming.came >= *incoming.sent_in_all;
    if (incoming.spec.peer != peer || lacks_nothing) continue;
    if (incoming.failure.empty()) incoming.failure = why;
  }
}

// Nothing may go out any more of what users may now change or free. Who gives one operation up has
// lost its communicator.
void PutHub::give_up() {
  port_->shut(Parting::kInTheMiddle);
  port_failed("given up here");  // short, so that it needs no memory
}

void PutHub::port_failed(const std::string& why) {
  was_told_anything_ = true;
  failure_ = why;
  for (auto& [number, outgoing] : outgoing_) outgoing.failure = why;
  for (auto& [number, incoming] : incoming_) incoming.failure = why;
}

void PutHub::was_told(std::uint32_t told) {
  // What was put is read after what was told of it.
  acquire_fence();
  const std::uint32_t link = link_of(told);
  if (told & kIsCredit) {
    const auto outgoing = outgoing_.find(link);
    if (outgoing == outgoing_.end()) return;
    was_told_anything_ = true;
    return take_credit(outgoing->second, told & kCountMask);
  }
  const auto incoming = incoming_.find(link);
  const bool is_ours = incoming != incoming_.end() && incoming->second.memory != nullptr;
  if (!is_ours) return;
  was_told_anything_ = true;
  if (told & kIsBody) {
    take_body(incoming->second, told & kSlotMask, (told & kOddRound) != 0);
  } else {
    take_head(incoming->second, told & kSlotMask);
  }
}

void PutHub::take_head(Incoming& incoming, std::uint32_t slot) {
  const std::uint32_t slots = context_.slots;
  MessageHeader header = {};
  if (slot < slots) {
    std::memcpy(&header, incoming.ring.data() + slot * stride_ + kHeaderOffset, sizeof header);
  }
  const std::uint32_t bytes = header.bytes & ~kBodyApart;
  const bool has_body_apart = (header.bytes & kBodyApart) != 0;
  const bool is_sound =
      slot < slots && !incoming.arrivals[slot].is_here && !incoming.arrivals[slot].has_head &&
      (has_body_apart || !incoming.arrivals[slot].has_body) && header.number % slots == slot &&
      header.number - incoming.released < slots && bytes != 0 && bytes <= context_.slot_bytes &&
      header.check == check_of(header);
  if (!is_sound) {
    incoming.failure = format(
        "it put message %llu of %u bytes into slot %u, with %llu messages read and %u slots of %zu "
        "bytes; its process is faulty",
        static_cast<unsigned long long>(header.number), bytes, slot,
        static_cast<unsigned long long>(incoming.released), slots, context_.slot_bytes);
    return;
  }
  incoming.arrivals[slot].has_head = true;
  const auto other_way = outgoing_.find(link_number(incoming.spec));
  if (other_way != outgoing_.end()) take_credit(other_way->second, header.credit);
  if (!has_body_apart || incoming.arrivals[slot].has_body) has_come_whole(incoming, slot);
}

void PutHub::take_body(Incoming& incoming, std::uint32_t slot, bool is_odd_round) {
  // Of the message that may be on its way to that slot.
  const std::uint64_t turns = incoming.released / context_.slots;
  const std::uint64_t turn = slot < incoming.released % context_.slots ? turns + 1 : turns;
  const bool is_sound = slot < context_.slots && !incoming.arrivals[slot].is_here &&
                        !incoming.arrivals[slot].has_body && is_odd_round == (turn % 2 != 0);
  if (!is_sound) {
    incoming.failure =
        format("it put a body into slot %u out of turn; its process is faulty", slot);
    return;
  }
  incoming.arrivals[slot].has_body = true;
  if (incoming.arrivals[slot].has_head) has_come_whole(incoming, slot);
}

void PutHub::has_come_whole(Incoming& incoming, std::uint32_t slot) {
  incoming.arrivals[slot].is_here = true;
  ++incoming.came;
  answer_leave(incoming);
  if (!push_credit(incoming)) must_push_ = true;
}

void PutHub::take_credit(Outgoing& outgoing, std::uint32_t slots) {
  if (slots > outgoing.put - outgoing.credited) {
    outgoing.failure = format("it gave back %u slots of %llu; its process is faulty", slots,
                              static_cast<unsigned long long>(outgoing.put - outgoing.credited));
    return;
  }
  outgoing.credited += slots;
}

void PutHub::control_came(const ControlMessage& message) {
  const auto words = open_control(context_.key, message, context_.rank, context_.nranks);
  if (!words) {
    note_refusal(Refused::kMessage, format("rank %d", context_.rank), "",
                 "it was not sealed with our key");
    return;
  }
  was_told_anything_ = true;
  switch (words->kind) {
    case ControlKind::kOpen: return take_open(*words);
    case ControlKind::kRing:
    case ControlKind::kRefuse: return take_ring(*words);
    case ControlKind::kLeave: return take_leave(*words);
    case ControlKind::kStay: return take_word_of_arrival(*words);
    case ControlKind::kTally: return take_tally(*words);
  }
}

bool PutHub::has_our_shape(const ControlWords& words) const {
  return words.slots == context_.slots && words.slot_bytes == context_.slot_bytes;
}

void PutHub::take_open(const ControlWords& words) {
  Incoming& incoming = incoming_of(link_number(words.from, words.channel));
  if (incoming.memory != nullptr) return give_ring(incoming);  // the answer may have been lost
  if (!has_our_shape(words)) {
    incoming.failure = format(
        "it has %u slots of %u bytes, we have %u of %zu (CATENARY_SLOTS, CATENARY_SLOT_BYTES)",
        words.slots, words.slot_bytes, context_.slots, context_.slot_bytes);
    say(ControlKind::kRefuse, incoming.spec, {});
    return;
  }
  incoming.arrivals.resize(context_.slots);
  incoming.credits_go = words.target;
  try {
    incoming.ring = Mapping::anonymous(context_.slots * stride_);
    incoming.memory = port_->register_memory({incoming.ring.data(), incoming.ring.bytes()});
  } catch (const Error& error) {
    incoming.failure = format("there is no memory for its messages: %s", error.what());
    return say(ControlKind::kRefuse, incoming.spec, {});
  }
  give_ring(incoming);
}

void PutHub::give_ring(const Incoming& incoming) {
  say(ControlKind::kRing, incoming.spec, {.target = incoming.memory->target()});
}

void PutHub::take_ring(const ControlWords& words) {
  const auto entry = outgoing_.find(link_number(words.from, words.channel));
  if (entry == outgoing_.end() || entry->second.ring) return;
  Outgoing& outgoing = entry->second;
  if (words.kind == ControlKind::kRefuse && has_our_shape(words)) {
    outgoing.failure = "it has no memory that its network can write to";
    return;
  }
  if (words.kind == ControlKind::kRefuse) {
    outgoing.failure = format(
        "it has %u slots of %u bytes, we have %u of %zu (CATENARY_SLOTS, CATENARY_SLOT_BYTES)",
        words.slots, words.slot_bytes, context_.slots, context_.slot_bytes);
    return;
  }
  outgoing.ring = words.target;
  if (!push_messages(outgoing)) must_push_ = true;
}

void PutHub::say(ControlKind kind, const LinkSpec& spec, ControlWords words) {
  words.kind = kind;
  words.channel = static_cast<std::uint16_t>(spec.channel);
  words.from = static_cast<std::uint32_t>(context_.rank);
  words.to = static_cast<std::uint32_t>(spec.peer);
  words.slots = context_.slots;
  words.slot_bytes = static_cast<std::uint32_t>(context_.slot_bytes);
  controls_.emplace_back(spec.peer, seal_control(context_.key, words));
  if (!push_controls()) must_push_ = true;
}

}  // namespace catenary
