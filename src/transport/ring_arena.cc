#include "src/transport/ring_arena.h"

#include <algorithm>

#include "src/base/error.h"
#include "src/transport/slot_writer.h"

namespace catenary {
namespace {

// What an x86-64 process can address, with room to spare for everything else.
constexpr std::size_t kMostBytes = std::size_t{1} << 46;

// Groups and rings that are warmed: beyond, the pages of all pairs add up. Eight members with rings
// of 16 slots have 10 MB of them a channel, once all pairs are linked.
constexpr int kMostWarmedMembers = 8;
constexpr std::uint32_t kMostWarmedSlots = 16;
// Of all belts of a rank, and of one: shorter ones are no better than the homes of slots.
constexpr std::size_t kMostBeltBytes = std::size_t{1} << 22;
constexpr std::size_t kLeastBeltBytes = std::size_t{1} << 18;
// Of each home and shuttle: where messages of up to 4 KB lie.
constexpr std::size_t kWarmedBytes = 2 * SlotRingShape::kPageBytes;

// To each of the others.
std::size_t share_of_belts(std::size_t bytes, int members) {
  const std::size_t share = bytes / static_cast<std::size_t>(std::max(members - 1, 1));
  return share >= kLeastBeltBytes ? share : 0;
}

std::size_t channel_index(int member, Channel channel) {
  return static_cast<std::size_t>(member) * kChannelCount + static_cast<std::size_t>(channel);
}

class RingSendLink final : public SendLink {
 public:
  RingSendLink(std::shared_ptr<const RingArena> arena, int from, int to, Channel channel,
               std::size_t belt_bytes, std::shared_ptr<Shuttles> shuttles, const SharedHeap& heap)
      : arena_(std::move(arena)),
        shuttles_(std::move(shuttles)),
        ring_(arena_->ring(from, to, channel), arena_->shape().ring, 0, belt_bytes,
              shuttles_.get()),
        peer_bell_(arena_->bell(to)),
        heap_(heap) {}

  ByteSpan try_acquire(std::size_t bytes) override { return ring_.try_acquire(bytes); }
  void write(std::byte* at, ByteView data) override {
    if (!ring_.is_at_hand()) return writer_.write(at, data);
    if (!data.empty()) std::memcpy(at, data.data(), data.size());
  }
  bool writes_past_caches(std::size_t bytes) const noexcept override {
    return !ring_.is_at_hand() && writer_.streams(bytes);
  }
  void commit(std::size_t bytes) override {
    ring_.commit(bytes);
    peer_bell_.ring();
  }
  void prepare() const noexcept override { ring_.prepare(); }
  bool try_flush() override {
    lent_ = lent_ && !ring_.drained();
    return !lent_;
  }
  std::optional<Loan> try_lend(ByteView memory) override {
    if (!heap_.holds(memory)) return std::nullopt;
    peer_borrows_ = peer_borrows_ || ring_.peer_borrows();
    if (!peer_borrows_) return std::nullopt;
    lent_ = true;
    return Loan{static_cast<std::uint64_t>(memory.data() - heap_.base), memory.size()};
  }
  void withdraw() noexcept override {
    if (lent_) ring_.withdraw();
  }

 private:
  std::shared_ptr<const RingArena> arena_;
  std::shared_ptr<Shuttles> shuttles_;
  SlotProducer ring_;
  Doorbell peer_bell_;
  SharedHeap heap_;
  SlotWriter writer_{now_ns};
  bool peer_borrows_ = false;
  bool lent_ = false;  // a message not yet released may be a loan
};

class RingRecvLink final : public RecvLink {
 public:
  RingRecvLink(std::shared_ptr<const RingArena> arena, int from, int to, Channel channel,
               std::shared_ptr<Shuttles> shuttles, ReadableHeap peer_heap)
      : arena_(std::move(arena)),
        shuttles_(std::move(shuttles)),
        ring_(arena_->ring(from, to, channel), arena_->shape().ring, 0, shuttles_.get()),
        peer_bell_(arena_->bell(from)),
        peer_heap_(std::move(peer_heap)) {
    if (peer_heap_.base != nullptr) ring_.say_that_it_borrows();
  }

  ByteView try_peek() override { return ring_.try_peek(); }
  void release() override {
    ring_.release();
    peer_bell_.ring();
  }
  ByteView borrow(const Loan& loan) override {
    if (loan.offset > peer_heap_.bytes || loan.bytes > peer_heap_.bytes - loan.offset) {
      throw_error(ErrorCode::kRemote,
                  "a peer lent %llu bytes at %llu of a heap of %zu; the peer's process is faulty",
                  static_cast<unsigned long long>(loan.bytes),
                  static_cast<unsigned long long>(loan.offset), peer_heap_.bytes);
    }
    return {peer_heap_.base + loan.offset, loan.bytes};
  }
  bool still_lent() const override { return ring_.still_lent(); }

 private:
  std::shared_ptr<const RingArena> arena_;
  std::shared_ptr<Shuttles> shuttles_;
  SlotConsumer ring_;
  Doorbell peer_bell_;
  ReadableHeap peer_heap_;
};

}  // namespace

std::size_t RingArenaShape::bell_offset(int member) const {
  return static_cast<std::size_t>(member) * sizeof(DoorbellWords);
}

std::size_t RingArenaShape::ring_offset(int from, int to, Channel channel) const {
  constexpr std::size_t kPage = SlotRingShape::kPageBytes;
  const std::size_t bells_end = (bell_offset(members) + kPage - 1) / kPage * kPage;
  const std::size_t pair = static_cast<std::size_t>(from) * static_cast<std::size_t>(members) +
                           static_cast<std::size_t>(to);
  return bells_end + (pair * kChannelCount + static_cast<std::size_t>(channel)) * ring.bytes();
}

std::size_t RingArenaShape::bytes() const {
  // Ring and group are bounded well below 2^32, but their product need not fit 64 bits.
  const double estimate =
      static_cast<double>(members) * members * kChannelCount * static_cast<double>(ring.bytes());
  if (estimate > static_cast<double>(kMostBytes)) {
    throw_error(ErrorCode::kInvalidUsage,
                "links between %d ranks with %u slots of %zu bytes exceed the address space; lower "
                "CATENARY_SLOTS or CATENARY_SLOT_BYTES",
                members, ring.slots, ring.slot_bytes);
  }
  return ring_offset(members, 0, Channel{});
}

RingArenaShape arena_shape(const TransportContext& context, int members) {
  SlotRingShape ring{context.slots, context.slot_bytes};
  const std::size_t belt = share_of_belts(kMostBeltBytes, members);
  ring.belt_bytes = belt - belt % SlotRingShape::kPageBytes;
  return {members, ring};
}

RingArena::RingArena(Mapping memory, const RingArenaShape& shape, bool shared)
    : memory_(std::move(memory)), shape_(shape), shared_(shared) {
  CATENARY_ASSERT(memory_.bytes() >= shape_.bytes());
}

Doorbell RingArena::bell(int member) const {
  std::byte* words = memory_.data() + shape_.bell_offset(member);
  return Doorbell(*reinterpret_cast<DoorbellWords*>(words), shared_);
}

std::byte* RingArena::ring(int from, int to, Channel channel) const {
  return memory_.data() + shape_.ring_offset(from, to, channel);
}

void RingArena::warm(int from, int to, Channel channel) const noexcept {
  if (shape_.members > kMostWarmedMembers || shape_.ring.slots > kMostWarmedSlots) return;
  std::byte* base = ring(from, to, channel);
  const SlotRingShape& shape = shape_.ring;
  const auto warm_from = [&](std::size_t place) {
    const std::size_t page = place - place % SlotRingShape::kPageBytes;
    populate(base + page, std::min(kWarmedBytes, shape.bytes() - page));
  };
  populate(base, shape.data_offset());
  for (std::uint32_t slot = 0; slot < shape.slots; ++slot) warm_from(shape.data_offset(slot));
  for (std::uint32_t shuttle = 0; shuttle < Shuttles::kOfEach; ++shuttle) {
    warm_from(shape.shuttle_offset() + shuttle * shape.shuttle_spacing());
  }
}

ArenaSeat::ArenaSeat(std::shared_ptr<const RingArena> arena, std::vector<int> ranks,
                     const TransportContext& context)
    : arena_(std::move(arena)),
      ranks_(std::move(ranks)),
      self_(member_of(context.rank)),
      bell_(arena_->bell(self_)),
      sends_made_(ranks_.size() * kChannelCount),
      recvs_made_(ranks_.size() * kChannelCount),
      shuttles_(ranks_.size() * kChannelCount),
      bytes_of_belts_(context.belt_bytes) {}

std::unique_ptr<SendLink> ArenaSeat::connect(const LinkSpec& spec, const SharedHeap& heap) {
  const int peer = member_of(spec.peer);
  take(sends_made_, peer, spec);
  arena_->warm(self_, peer, spec.channel);
  return std::make_unique<RingSendLink>(arena_, self_, peer, spec.channel, bytes_of_a_belt(),
                                        shuttles_with(peer, spec.channel), heap);
}

std::unique_ptr<RecvLink> ArenaSeat::listen(const LinkSpec& spec, ReadableHeap peer_heap) {
  const int peer = member_of(spec.peer);
  take(recvs_made_, peer, spec);
  arena_->warm(peer, self_, spec.channel);
  return std::make_unique<RingRecvLink>(arena_, peer, self_, spec.channel,
                                        shuttles_with(peer, spec.channel), std::move(peer_heap));
}

std::shared_ptr<Shuttles> ArenaSeat::shuttles_with(int member, Channel channel) {
  std::shared_ptr<Shuttles>& shuttles = shuttles_[channel_index(member, channel)];
  if (shuttles == nullptr) {
    const SlotRingShape& shape = arena_->shape().ring;
    const auto first = [&](int from, int to) {
      return arena_->ring(from, to, channel) + shape.shuttle_offset();
    };
    shuttles = std::make_shared<Shuttles>(first(self_, member), first(member, self_),
                                          shape.slot_bytes, shape.shuttle_spacing());
  }
  return shuttles;
}

std::size_t ArenaSeat::bytes_of_a_belt() const {
  if (is_crowded_) return 0;
  return std::min(share_of_belts(bytes_of_belts_, arena_->shape().members),
                  arena_->shape().ring.belt_bytes);
}

int ArenaSeat::member_of(int rank) const {
  const auto found = std::lower_bound(ranks_.begin(), ranks_.end(), rank);
  if (found == ranks_.end() || *found != rank) {
    throw_error(ErrorCode::kInternal, "no link to rank %d: it shares no memory with this rank",
                rank);
  }
  return static_cast<int>(found - ranks_.begin());
}

// A second link would start counting where the first one started, and find a ring that has moved
// on.
void ArenaSeat::take(std::vector<bool>& made, int member, const LinkSpec& spec) {
  const std::size_t index = channel_index(member, spec.channel);
  if (made[index]) {
    throw_error(ErrorCode::kInternal, "channel %d of the link with rank %d was made before",
                static_cast<int>(spec.channel), spec.peer);
  }
  made[index] = true;
}

std::vector<int> reachable_ranks(const Transport& transport, std::span<const Bytes> addresses) {
  std::vector<int> ranks;
  for (std::size_t rank = 0; rank < addresses.size(); ++rank) {
    if (transport.reaches(addresses[rank])) ranks.push_back(static_cast<int>(rank));
  }
  return ranks;
}

}  // namespace catenary
