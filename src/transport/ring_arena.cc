#include "src/transport/ring_arena.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "src/base/copy.h"
#include "src/base/error.h"
#include "src/base/shared_copy.h"
#include "src/transport/process_runs.h"
#include "src/transport/slot_writer.h"

namespace catenary {
namespace {

// What an x86-64 process can address, with room to spare for everything else.
constexpr std::size_t kMostBytes = std::size_t{1} << 46;

// Groups and rings that are warmed: beyond, the pages of all pairs add up. Eight members with rings
// of 16 slots have 2 MB of them a channel, once all pairs are linked.
constexpr int kMostWarmedMembers = 8;
constexpr std::uint32_t kMostWarmedSlots = 16;
// Of all belts of a rank, and of one: shorter ones are no better than the homes of slots.
constexpr std::size_t kMostBeltBytes = std::size_t{1} << 22;
constexpr std::size_t kLeastBeltBytes = std::size_t{1} << 18;
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

// Shorter loans, or parts of them, are copied sooner than two can share that. (How long chunks must
// be, which may be lent in parts, is for who copies to say.)
constexpr std::size_t kLeastTogether = std::size_t{1} << 17;

// How a receiver can borrow: it has mapped our heap; the kernel copies for it.
constexpr std::uint32_t kByMapping = 1;
constexpr std::uint32_t kByKernel = 2;

SharedCopyWords& copy_words(std::byte* ring) {
  return *reinterpret_cast<SharedCopyWords*>(ring + SlotRingShape::kSharedCopy);
}

constexpr bool is_within(std::uint64_t offset, std::uint64_t bytes, std::uint64_t most) {
  return offset <= most && bytes <= most - offset;
}

class RingSendLink final : public SendLink {
 public:
  RingSendLink(std::shared_ptr<const RingArena> arena, int from, int to, int peer, Channel channel,
               std::size_t belt_bytes, std::shared_ptr<Shuttles> shuttles,
               std::shared_ptr<StageRing> stage, const SharedHeap& heap,
               ArenaSeat::HeapReacher peer_heap, std::size_t least_fetched)
      : arena_(std::move(arena)),
        shuttles_(std::move(shuttles)),
        stage_(std::move(stage)),
        ring_(arena_->ring(from, to, channel), arena_->shape().ring, 0, belt_bytes,
              shuttles_.get()),
        peer_bell_(arena_->bell(to)),
        copy_(copy_words(arena_->ring(from, to, channel))),
        peer_(peer),
        heap_(heap),
        reach_peer_heap_(std::move(peer_heap)),
        least_fetched_(least_fetched) {}

  ~RingSendLink() override { stage_->forget(ring_); }

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
  void commit_quietly(std::size_t bytes) override { ring_.commit(bytes); }
  void ring_after_fence() noexcept override { peer_bell_.ring_after_fence(); }
  void prepare() const noexcept override { ring_.prepare(); }
  bool try_flush() override {
    lent_ = lent_ && !ring_.drained();
    return !lent_;
  }
  bool is_flushed_by_commit() const noexcept override { return true; }
  std::optional<Loan> try_lend(ByteView memory, const Terms& terms) override {
    const bool is_mapped = heap_.holds(memory);
    const bool is_fetched = terms.may_be_fetched && memory.size() >= least_fetched_;
    if (!is_mapped && !is_fetched) return std::nullopt;
    if (!peer_borrows(is_mapped ? kByMapping : kByKernel)) return std::nullopt;
    if (!is_mapped && !can_be_fetched(memory)) return std::nullopt;
    lent_ = true;
    const std::size_t bytes = memory.size();
    if (!is_mapped) {
      return Loan{Loan::kInProcess | reinterpret_cast<std::uintptr_t>(memory.data()), bytes};
    }
    const bool takes_result = terms.result != nullptr && heap_.holds({terms.result, bytes});
    return Loan{offset_of(memory.data()), bytes,
                takes_result ? offset_of(terms.result) : Loan::kNowhere};
  }
  Stage* stage() override { return stage_.get(); }
  Loan lend_staged(ByteView memory) override { return stage_->lend(memory, peer_, ring_); }
  void withdraw() noexcept override {
    if (lent_) ring_.withdraw();
  }
  bool is_written_to() noexcept override {
    const std::uint32_t process = lent_ ? ring_.writer() : 0;
    return process != 0 && process_runs(process);
  }
  bool try_help() override {
    if (!lent_ || !copy_.is_asked()) return false;
    if (!peer_heap_) peer_heap_ = reach_peer_heap_();
    if (!peer_heap_->is_writable) return false;
    const auto fits = [this](std::uint64_t from, std::uint64_t to, std::uint64_t bytes) {
      return is_within(from, bytes, heap_.bytes) && is_within(to, bytes, peer_heap_->bytes);
    };
    const auto piece = copy_.take(process_, fits);
    if (!piece) return false;
    const auto copied = piece->past_caches ? copy_streaming : copy;
    copied(peer_heap_->base + piece->to, heap_.base + piece->from, piece->bytes);
    copy_.done();
    peer_bell_.ring();
    return true;
  }

 private:
  std::uint64_t offset_of(const std::byte* place) const {
    return static_cast<std::uint64_t>(place - heap_.base);
  }
  bool peer_borrows(std::uint32_t way) {
    if (ways_to_borrow_ == 0) ways_to_borrow_ = ring_.ways_to_borrow();
    return (ways_to_borrow_ & way) != 0;
  }

  // The same buffers come again and again.
  bool can_be_fetched(ByteView memory) {
    const auto holds = [&](ByteView known) {
      return memory.data() >= known.data() &&
             memory.data() + memory.size() <= known.data() + known.size();
    };
    if (std::ranges::any_of(fetchable_, holds)) return true;
    if (!ProcessMemory::own().can_read(memory)) return false;
    fetchable_[next_fetchable_++ % fetchable_.size()] = memory;
    return true;
  }

  std::shared_ptr<const RingArena> arena_;
  std::shared_ptr<Shuttles> shuttles_;
  std::shared_ptr<StageRing> stage_;
  SlotProducer ring_;
  Doorbell peer_bell_;
  SharedCopyGiver copy_;
  int peer_;
  SharedHeap heap_;
  ArenaSeat::HeapReacher reach_peer_heap_;
  std::optional<PeerHeap> peer_heap_;  // once it was reached for
  const std::uint32_t process_ = static_cast<std::uint32_t>(::getpid());
  SlotWriter writer_{now_ns};
  std::size_t least_fetched_;
  std::uint32_t ways_to_borrow_ = 0;  // of the peer, as far as we know
  std::array<ByteView, 4> fetchable_ = {};
  std::size_t next_fetchable_ = 0;
  bool lent_ = false;  // a message not yet released may be a loan
};

class RingRecvLink final : public RecvLink {
 public:
  // `heap`: our own, if it is worth having the peer write to it.
  RingRecvLink(std::shared_ptr<const RingArena> arena, int from, int to, Channel channel,
               std::shared_ptr<Shuttles> shuttles, int peer, const SharedHeap& heap,
               PeerHeap peer_heap, ProcessMemory peer_memory)
      : arena_(std::move(arena)),
        shuttles_(std::move(shuttles)),
        ring_(arena_->ring(from, to, channel), arena_->shape().ring, 0, shuttles_.get()),
        peer_bell_(arena_->bell(from)),
        copy_(copy_words(arena_->ring(from, to, channel))),
        peer_stage_(arena_->stage(from, channel)),
        peer_(peer),
        heap_(heap),
        peer_heap_(std::move(peer_heap)),
        peer_memory_(peer_memory) {
    ring_.say_how_it_borrows((peer_heap_.base != nullptr ? kByMapping : 0) |
                             (peer_memory_ ? kByKernel : 0));
  }

  ByteView try_peek() override { return ring_.try_peek(); }
  void release() override {
    release_quietly();
    peer_bell_.ring();
  }
  void release_quietly() override {
    fetched_ = nullptr;
    ring_.release();
  }
  void ring_after_fence() noexcept override { peer_bell_.ring_after_fence(); }
  ByteView borrow(const Loan& loan, std::byte* into) override {
    if ((loan.offset & Loan::kInProcess) != 0) return fetch(loan, into);
    if ((loan.offset & Loan::kOnStage) != 0) return on_stage(loan);
    check_bounds(loan.offset, loan.bytes, peer_heap_.bytes, "heap");
    return {peer_heap_.base + loan.offset, loan.bytes};
  }
  bool still_lent() const override { return ring_.still_lent(); }

  Copied copy_together(ByteView borrowed, std::byte* into, bool past_caches) override {
    if (!is_copying_) {
      if (borrowed.size() < kLeastTogether || !heap_.holds({into, borrowed.size()}) ||
          !is_in_peers_heap(borrowed)) {
        return Copied::kNothing;
      }
      copy_with_peer(borrowed, into, past_caches);
    }
    is_copying_ = copy_.is_helped();
    return is_copying_ ? Copied::kUnderWay : Copied::kDone;
  }
  bool is_helped() noexcept override {
    const std::uint32_t process = is_copying_ && copy_.is_helped() ? copy_.giver() : 0;
    return process != 0 && process_runs(process);
  }

  bool reaches_results() const noexcept override { return peer_heap_.is_writable; }
  std::byte* place_for_result(const Loan& loan) override {
    check_bounds(loan.result, loan.bytes, peer_heap_.bytes, "heap");
    return peer_heap_.base + loan.result;
  }
  bool try_begin_writing() override { return ring_.try_begin_writing(process_); }
  void write_result(std::byte* at, ByteView data, bool past_caches) override {
    if (past_caches) return copy_streaming(at, data.data(), data.size());
    result_writer_.write(at, data);
  }
  bool streams_results(std::size_t bytes) const noexcept override {
    return result_writer_.streams(bytes);
  }
  void end_writing() override { ring_.end_writing(); }

 private:
  bool is_in_peers_heap(ByteView memory) const {
    return SharedHeap{peer_heap_.base, peer_heap_.bytes}.holds(memory);
  }
  void copy_with_peer(ByteView borrowed, std::byte* into, bool past_caches) {
    copy_.open({static_cast<std::uint64_t>(borrowed.data() - peer_heap_.base),
                static_cast<std::uint64_t>(into - heap_.base), borrowed.size(), past_caches});
    is_copying_ = true;
    while (const std::optional<SharedPiece> piece = copy_.take()) {
      (past_caches ? copy_streaming : copy)(into + piece->at, borrowed.data() + piece->at,
                                            piece->bytes);
    }
    copy_.close();
  }

  static void check_bounds(std::uint64_t offset, std::uint64_t bytes, std::size_t most,
                           const char* where) {
    if (is_within(offset, bytes, most)) return;
    throw_error(ErrorCode::kRemote,
                "a peer lent %llu bytes at %llu of a %s of %zu; the peer's process is faulty",
                static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(offset),
                where, most);
  }
  ByteView on_stage(const Loan& loan) const {
    const std::uint64_t offset = loan.offset & ~Loan::kOnStage;
    check_bounds(offset, loan.bytes, arena_->shape().stage_bytes, "stage");
    return {peer_stage_ + offset, loan.bytes};
  }
  ByteView fetch(const Loan& loan, std::byte* into) {
    if (fetched_ != nullptr && fetched_from_ == loan.offset) return {fetched_, loan.bytes};
    std::byte* const to = into != nullptr ? into : room_for(loan.bytes);
    if (to == nullptr || !peer_memory_) return RecvLink::borrow(loan, into);
    const std::uint64_t from = loan.offset & ~Loan::kInProcess;
    if (const int reason = peer_memory_.try_read(to, from, loan.bytes); reason != 0) {
      throw unfetched(reason);
    }
    fetched_ = to;
    fetched_from_ = loan.offset;
    return {to, loan.bytes};
  }
  Error unfetched(int reason) const {
    if (!ring_.still_lent()) {
      return {ErrorCode::kRemote,
              format("rank %d gave an operation up while its memory was being read", peer_)};
    }
    if (reason == ESRCH) return {ErrorCode::kRemote, format("rank %d's process is gone", peer_)};
    return {ErrorCode::kRemote,
            format("the kernel does not copy what rank %d sends out of its memory (%s); with "
                   "CATENARY_FETCH_BYTES=0 such messages go another way",
                   peer_, errno_text(reason).c_str())};
  }
  // For what is not wanted anywhere. Null: it is longer than any message.
  std::byte* room_for(std::size_t bytes) {
    const std::size_t most = arena_->shape().ring.slot_bytes;
    if (bytes > most) return nullptr;
    if (!room_) room_ = Mapping::anonymous(most);
    return room_.data();
  }

  std::shared_ptr<const RingArena> arena_;
  std::shared_ptr<Shuttles> shuttles_;
  SlotConsumer ring_;
  Doorbell peer_bell_;
  SharedCopyOwner copy_;
  bool is_copying_ = false;  // together with the peer
  const std::byte* peer_stage_;
  int peer_;
  SharedHeap heap_;
  PeerHeap peer_heap_;
  const std::uint32_t process_ = static_cast<std::uint32_t>(::getpid());
  SlotWriter result_writer_{now_ns};
  ProcessMemory peer_memory_;
  Mapping room_;
  const std::byte* fetched_ = nullptr;  // what was copied last of the peeked loan
  std::uint64_t fetched_from_ = 0;
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
      least_fetched_(context.least_fetched) {
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
                                             ArenaSeat::HeapReacher peer_heap) {
  const int peer = member_of(spec.peer);
  take(sends_made_, peer, spec);
  arena_->warm(self_, peer, spec.channel);
  return std::make_unique<RingSendLink>(arena_, self_, peer, spec.peer, spec.channel,
                                        bytes_of_a_belt(), shuttles_with(peer, spec.channel),
                                        stages_[static_cast<std::size_t>(spec.channel)], heap,
                                        std::move(peer_heap), least_fetched_);
}

std::unique_ptr<RecvLink> ArenaSeat::listen(const LinkSpec& spec, const SharedHeap& heap,
                                            PeerHeap peer_heap, ProcessMemory peer_memory) {
  const int peer = member_of(spec.peer);
  take(recvs_made_, peer, spec);
  arena_->warm(peer, self_, spec.channel);
  return std::make_unique<RingRecvLink>(
      arena_, peer, self_, spec.channel, shuttles_with(peer, spec.channel), spec.peer,
      is_crowded_ ? SharedHeap{} : heap, std::move(peer_heap), peer_memory);
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
