#include "src/transport/ring_arena.h"

#include <algorithm>

#include "src/base/error.h"
#include "src/base/rounding.h"
#include "src/base/size_literals.h"
#include "src/transport/ring_links.h"

namespace catenary {
namespace {

// What an x86-64 process can address, with room to spare for everything else.
constexpr std::size_t kMostBytes = 64_TB;

// Groups and rings that are warmed: beyond, the pages of all pairs add up. Eight members with rings
// of 16 slots have 2 MB of them a channel, once all pairs are linked.
constexpr int kMostWarmedMembers = 8;
constexpr std::uint32_t kMostWarmedSlots = 16;
// Of all belts of a rank, and of one: shorter ones are no better than the homes of slots.
constexpr std::size_t kMostBeltBytes = 4_MB;
constexpr std::size_t kLeastBeltBytes = 256_KB;
// So many of the longest parts of a pass does a stage hold.
constexpr std::size_t kPlacesOnStage = 3;
// Beside all heads only where the first messages that are answered lie, up to 4 KB of them. A page
// costs some microseconds whoever brings it in, and most homes and shuttles are never used.
constexpr std::uint32_t kWarmedShuttles = 2;
constexpr std::size_t kWarmedBytes = 2 * SlotRingShape::kPageBytes;

// To each of the others.
std::size_t share_of_belts(std::size_t bytes, int members) {
  const std::size_t share = bytes / static_cast<std::size_t>(std::max(members - 1, 1));
  return share >= kLeastBeltBytes ? share : 0;
}

std::size_t channel_index(int member, Channel channel) {
  return static_cast<std::size_t>(member) * kChannelCount + static_cast<std::size_t>(channel);
}

}  // namespace

std::size_t RingArenaShape::bell_offset(int member) const {
  return static_cast<std::size_t>(member) * sizeof(DoorbellWords);
}

std::size_t RingArenaShape::ring_offset(int from, int to, Channel channel) const {
  const std::size_t bells_end = round_up(bell_offset(members), SlotRingShape::kPageBytes);
  const std::size_t pair = static_cast<std::size_t>(from) * static_cast<std::size_t>(members) +
                           static_cast<std::size_t>(to);
  return bells_end + (pair * kChannelCount + static_cast<std::size_t>(channel)) * ring.bytes();
}

std::size_t RingArenaShape::bytes() const {
  // Ring and group are bounded well below 2^32, but their product need not fit 64 bits.
  const double of_a_member =
      members * static_cast<double>(ring.bytes()) + static_cast<double>(stage_bytes);
  const double estimate = static_cast<double>(members) * kChannelCount * of_a_member;
  if (estimate > static_cast<double>(kMostBytes)) {
    throw_error(ErrorCode::kInvalidUsage,
                "links between %d ranks with %u slots of %zu bytes exceed the address space; lower "
                "CATENARY_SLOTS or CATENARY_SLOT_BYTES",
                members, ring.slots, ring.slot_bytes);
  }
  return stage_offset(members, Channel{});
}

std::size_t RingArenaShape::stage_offset(int member, Channel channel) const {
  return ring_offset(members, 0, Channel{}) + channel_index(member, channel) * stage_bytes;
}

RingArenaShape arena_shape(const TransportContext& context, int members) {
  SlotRingShape ring{context.slots, context.slot_bytes};
  const std::size_t belt = share_of_belts(kMostBeltBytes, members);
  ring.belt_bytes = belt - belt % SlotRingShape::kPageBytes;
  // Of few ranks each has one reader.
  const std::size_t longest = ring.slots * ring.slot_bytes / 2 + StageRing::kGapBytes;
  const std::size_t stage = members > 2 ? kPlacesOnStage * longest : 0;
  return {members, ring, stage + SlotRingShape::kPageBytes - stage % SlotRingShape::kPageBytes};
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

std::byte* RingArena::stage(int member, Channel channel) const {
  return memory_.data() + shape_.stage_offset(member, channel);
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
  for (std::uint32_t left = 1; left <= kWarmedShuttles; ++left) {
    const std::uint32_t shuttle = Shuttles::kOfEach - left;  // the last ones are at hand first
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
      bytes_of_belts_(context.belt_bytes),
      least_fetched_(context.least_fetched),
      where_they_pay_(context.where_they_pay) {
  for (std::size_t channel = 0; channel < stages_.size(); ++channel) {
    std::byte* const memory = arena_->stage(self_, static_cast<Channel>(channel));
    stages_[channel] = std::make_shared<StageRing>(memory, arena_->shape().stage_bytes);
  }
}

void ArenaSeat::note_crowding(bool is_crowded) {
  is_crowded_ = is_crowded;
  for (const auto& stage : stages_) stage->note_crowding(is_crowded);
}

std::unique_ptr<SendLink> ArenaSeat::connect(const LinkSpec& spec, const SharedHeap& heap,
                                             PeerReacher reach_peer) {
  const int peer = member_of(spec.peer);
  take(sends_made_, peer, spec);
  arena_->warm(self_, peer, spec.channel);
  return make_ring_send_link({arena_, self_, peer, spec.peer, spec.channel},
                             {.heap = heap,
                              .shuttles = shuttles_with(peer, spec.channel),
                              .stage = stages_[static_cast<std::size_t>(spec.channel)],
                              .belt_bytes = bytes_of_a_belt(),
                              .least_fetched = least_fetched_,
                              .where_they_pay = where_they_pay_,
                              .reach_peer = std::move(reach_peer)});
}

std::unique_ptr<RecvLink> ArenaSeat::listen(const LinkSpec& spec, const SharedHeap& heap,
                                            PeerReach reach) {
  const int peer = member_of(spec.peer);
  take(recvs_made_, peer, spec);
  arena_->warm(peer, self_, spec.channel);
  return make_ring_recv_link({arena_, peer, self_, spec.peer, spec.channel},
                             {.heap = heap,
                              .shuttles = shuttles_with(peer, spec.channel),
                              .may_be_helped = !is_crowded_,
                              .reach = std::move(reach)});
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
