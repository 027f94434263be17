#include "src/transport/ring_links.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>

#include "src/base/copy.h"
#include "src/base/error.h"
#include "src/base/log.h"
#include "src/base/shared_copy.h"
#include "src/transport/process_runs.h"
#include "src/transport/slot_writer.h"

namespace catenary {
namespace {

// How a receiver can borrow: it has mapped our heap; the kernel copies for it.
constexpr std::uint32_t kByMapping = 1;
constexpr std::uint32_t kByKernel = 2;

SharedCopyWords& copy_words(std::byte* ring) {
  return *reinterpret_cast<SharedCopyWords*>(ring + SlotRingShape::kSharedCopy);
}

std::byte* ring_at(const RingPlace& place) {
  return place.arena->ring(place.from, place.to, place.channel);
}

constexpr bool is_within(std::uint64_t offset, std::uint64_t bytes, std::uint64_t most) {
  return offset <= most && bytes <= most - offset;
}

// A piece of what is taken together, by whoever of the two.
void take(ByteView from, const RecvLink::Taking& taking) {
  if (taking.operand == nullptr) {
    (taking.past_caches ? copy_streaming : copy)(taking.into, from.data(), from.size());
  } else {
    taking.combination.combine(taking.into, taking.operand, from, {taking.operand_last},
                               taking.past_caches);
  }
}

class RingSendLink final : public SendLink {
 public:
  RingSendLink(const RingPlace& place, RingSenderTerms terms)
      : arena_(place.arena),
        shuttles_(std::move(terms.shuttles)),
        stage_(std::move(terms.stage)),
        ring_(ring_at(place), arena_->shape().ring, 0, terms.belt_bytes, shuttles_.get()),
        peer_bell_(arena_->bell(place.to)),
        copy_(copy_words(ring_at(place))),
        peer_(place.peer),
        heap_(terms.heap),
        reach_peer_(std::move(terms.reach_peer)),
        least_fetched_(terms.least_fetched),
        where_they_pay_(terms.where_they_pay) {}

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
    commit_quietly(bytes);
    peer_bell_.ring();
  }
  void commit_quietly(std::size_t bytes) override { ring_.commit(bytes, writer_.streams(bytes)); }
  void ring_lightly() noexcept override { peer_bell_.ring_lightly(); }
  void prepare(std::size_t bytes) const noexcept override { ring_.prepare(bytes); }
  bool try_flush() override {
    lent_ = lent_ && !ring_.drained();
    return !lent_;
  }
  bool is_flushed_by_commit() const noexcept override { return true; }
  std::optional<Loan> try_lend(ByteView memory, const Terms& terms) override {
    const bool is_mapped = heap_.holds(memory);
    const bool is_fetched = terms.fetching != Fetching::kNever && memory.size() >= least_fetched_;
    if (!is_mapped && !is_fetched) return std::nullopt;
    if (!peer_borrows(is_mapped ? kByMapping : kByKernel)) return std::nullopt;
    if (!is_mapped && !(copies_pay(terms.fetching, memory.size()) && can_be_fetched(memory))) {
      return std::nullopt;
    }
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
  bool try_help(const Combination& combination) override {
    if (!lent_ || !copy_.is_asked()) return false;
    if (!peer_reach_) peer_reach_ = reach_peer_();
    const auto fits = [&](const SharedCopyOffer& whole) {
      const bool combines = whole.combination != 0;
      if (combines && whole.combination != combination.name) return false;
      // The kernel itself looks whether there is such memory, and it is the peer's that changes.
      if (whole.by_kernel) return !combines && may_write_ && peer_reach_->process;
      const std::size_t theirs = peer_reach_->heap.bytes;
      return peer_reach_->heap.is_writable && is_within(whole.from, whole.bytes, heap_.bytes) &&
             is_within(whole.to, whole.bytes, theirs) &&
             (!combines || is_within(whole.operand, whole.bytes, theirs));
    };
    const auto piece = copy_.take(process_, fits);
    if (!piece) return false;
    copy_piece(*piece, combination);
    peer_bell_.ring();
    return true;
  }

 private:
  std::uint64_t offset_of(const std::byte* place) const {
    return static_cast<std::uint64_t>(place - heap_.base);
  }
  void copy_piece(const SharedCopyGiver::Piece& piece, const Combination& combination) {
    if (!copy_.is_wanted(piece)) return copy_.refuse();
    if (!piece.by_kernel) {
      std::byte* const theirs = peer_reach_->heap.base;
      std::byte* const to = theirs + piece.to;
      map_by_reading(to, piece.bytes);
      take({heap_.base + piece.from, piece.bytes},
           {.into = to,
            .past_caches = piece.past_caches,
            .operand = piece.combination != 0 ? theirs + piece.operand : nullptr,
            .combination = combination,
            .operand_last = piece.operand_last});
      return copy_.done();
    }
    const auto* const from = reinterpret_cast<const std::byte*>(piece.from);
    const int reason = peer_reach_->process.try_write(piece.to, from, piece.bytes);
    if (reason == 0) return copy_.done();
    copy_.refuse();
    may_write_ = false;
    log_info(Subsystem::kShm, -1,
             format("The kernel does not write to rank %d's memory, which copies alone from now "
                    "on: %s",
                    peer_, errno_text(reason).c_str()));
  }
  bool peer_borrows(std::uint32_t way) {
    if (ways_to_borrow_ == 0) ways_to_borrow_ = ring_.ways_to_borrow();
    return (ways_to_borrow_ & way) != 0;
  }

  // What is short, or nothing that we may write, the receiver copies alone all the same.
  bool copies_pay(Fetching fetching, std::size_t bytes) const {
    if (!where_they_pay_) return true;
    const bool can_help = may_write_ && (!peer_reach_ || peer_reach_->process);
    const bool by_both =
        fetching == Fetching::kByBoth && bytes >= RecvLink::kLeastCopiedTogether && can_help;
    return by_both ? where_they_pay_->pay_for_both() : where_they_pay_->pay();
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
  PeerReacher reach_peer_;
  std::optional<PeerReach> peer_reach_;  // once it was looked for
  bool may_write_ = true;                // the kernel has not refused it
  const std::uint32_t process_ = static_cast<std::uint32_t>(::getpid());
  SlotWriter writer_{now_ns};
  std::size_t least_fetched_;
  std::optional<KernelCopies> where_they_pay_;
  std::uint32_t ways_to_borrow_ = 0;  // of the peer, as far as we know
  std::array<ByteView, 4> fetchable_ = {};
  std::size_t next_fetchable_ = 0;
  bool lent_ = false;  // a message not yet released may be a loan
};

class RingRecvLink final : public RecvLink {
 public:
  RingRecvLink(const RingPlace& place, RingReceiverTerms terms)
      : arena_(place.arena),
        shuttles_(std::move(terms.shuttles)),
        ring_(ring_at(place), arena_->shape().ring, 0, shuttles_.get()),
        peer_bell_(arena_->bell(place.from)),
        copy_(copy_words(ring_at(place))),
        may_be_helped_(terms.may_be_helped),
        peer_stage_(arena_->stage(place.from, place.channel)),
        peer_(place.peer),
        heap_(terms.heap),
        peer_heap_(std::move(terms.reach.heap)),
        peer_process_(terms.reach.process) {
    ring_.say_how_it_borrows((peer_heap_.base != nullptr ? kByMapping : 0) |
                             (peer_process_ ? kByKernel : 0));
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
  void ring_lightly() noexcept override { peer_bell_.ring_lightly(); }
  ByteView borrow(const Loan& loan, std::byte* into, bool together) override {
    if ((loan.offset & Loan::kInProcess) != 0) return fetch(loan, into, together);
    if ((loan.offset & Loan::kOnStage) != 0) return on_stage(loan);
    check_bounds(loan.offset, loan.bytes, peer_heap_.bytes, "heap");
    return {peer_heap_.base + loan.offset, loan.bytes};
  }
  // A sender that runs ahead goes on writing close to what is read.
  void read(std::byte* to, ByteView from) override {
    const bool by_vectors = strings_slow_writers() && ring_.is_on_warm_belt(from.data());
    (by_vectors ? copy_by_vectors : copy)(to, from.data(), from.size());
  }
  bool still_lent() const override { return ring_.still_lent(); }

  Copied copy_together(ByteView borrowed, const Taking& taking) override {
    std::byte* const into = taking.into;
    if (!is_copying_) {
      const bool is_copy = taking.operand == nullptr;
      if (is_copy && borrowed.data() == into) return Copied::kDone;  // the kernel has put it there
      const bool is_ours = heap_.holds({into, borrowed.size()}) &&
                           (is_copy || heap_.holds({taking.operand, borrowed.size()}));
      if (!is_shared(borrowed.size(), is_copy) || !is_ours || !is_in_peers_heap(borrowed)) {
        return Copied::kNothing;
      }
      copy_with_peer(borrowed, taking);
    }
    is_copying_ = copy_.is_helped();
    if (is_copying_) return Copied::kUnderWay;
    if (borrowed.data() == into && (lacks_some_ || copy_.lacks_some())) fetch_alone(borrowed, into);
    lacks_some_ = false;
    return Copied::kDone;
  }
  bool is_helped() noexcept override {
    const std::uint32_t process = is_copying_ && copy_.is_helped() ? copy_.giver() : 0;
    return process != 0 && process_runs(process);
  }

  void forbid_help() noexcept override { copy_.cancel(); }

  bool reaches_results() const noexcept override { return peer_heap_.is_writable; }
  std::byte* place_for_result(const Loan& loan) override {
    check_bounds(loan.result, loan.bytes, peer_heap_.bytes, "heap");
    return peer_heap_.base + loan.result;
  }
  bool try_begin_writing(ByteView part) override {
    if (!ring_.try_begin_writing(process_)) return false;
    map_by_reading(part.data(), part.size());
    return true;
  }
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
  bool is_shared(std::size_t bytes, bool is_copy = true) const {
    return may_be_helped_ && bytes >= (is_copy ? kLeastCopiedTogether : kLeastCombinedTogether);
  }
  void copy_with_peer(ByteView borrowed, const Taking& taking) {
    const std::byte* const operand = taking.operand;
    SharedCopyOffer offer{.from = static_cast<std::uint64_t>(borrowed.data() - peer_heap_.base),
                          .to = static_cast<std::uint64_t>(taking.into - heap_.base),
                          .bytes = borrowed.size(),
                          .past_caches = taking.past_caches};
    if (operand != nullptr) {
      offer.operand = static_cast<std::uint64_t>(operand - heap_.base);
      offer.combination = taking.combination.name;
      offer.operand_last = taking.operand_last;
    }
    copy_.open(offer);
    is_copying_ = true;
    while (const std::optional<SharedPiece> piece = copy_.take()) {
      Taking part = taking;
      part.into += piece->at;
      if (operand != nullptr) part.operand += piece->at;
      take(borrowed.subspan(piece->at, piece->bytes), part);
    }
    copy_.close();
  }
  // What cannot be read is tried again once nobody else copies, and is an error then.
  void fetch_with_peer(std::uint64_t from, std::byte* into, std::size_t bytes) {
    copy_.open({.from = from,
                .to = reinterpret_cast<std::uintptr_t>(into),
                .bytes = bytes,
                .by_kernel = true});
    is_copying_ = true;
    while (const std::optional<SharedPiece> piece = copy_.take()) {
      lacks_some_ = peer_process_.try_read(into + piece->at, from + piece->at, piece->bytes) != 0;
      if (lacks_some_) break;
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
  ByteView fetch(const Loan& loan, std::byte* into, bool together) {
    if (fetched_ != nullptr && fetched_from_ == loan.offset) return {fetched_, loan.bytes};
    std::byte* const to = into != nullptr ? into : room_for(loan.bytes);
    if (to == nullptr || !peer_process_) return RecvLink::borrow(loan, into, together);
    fetched_ = nullptr;
    fetched_from_ = loan.offset;
    if (together && to == into && is_shared(loan.bytes)) {
      fetch_with_peer(loan.offset & ~Loan::kInProcess, to, loan.bytes);
    } else {
      fetch_alone({to, loan.bytes}, to);
    }
    fetched_ = to;
    return {to, loan.bytes};
  }
  void fetch_alone(ByteView what, std::byte* to) {
    const std::uint64_t from = fetched_from_ & ~Loan::kInProcess;
    if (const int reason = peer_process_.try_read(to, from, what.size()); reason != 0) {
      throw unfetched(reason);
    }
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
  bool may_be_helped_;
  bool is_copying_ = false;  // together with the peer
  bool lacks_some_ = false;  // of such a copy we could not read a piece
  const std::byte* peer_stage_;
  int peer_;
  SharedHeap heap_;
  PeerHeap peer_heap_;
  const std::uint32_t process_ = static_cast<std::uint32_t>(::getpid());
  SlotWriter result_writer_{now_ns};
  ProcessMemory peer_process_;
  Mapping room_;
  const std::byte* fetched_ = nullptr;  // what was copied last of the peeked loan
  std::uint64_t fetched_from_ = 0;
};

}  // namespace

std::unique_ptr<SendLink> make_ring_send_link(const RingPlace& place, RingSenderTerms terms) {
  return std::make_unique<RingSendLink>(place, std::move(terms));
}

std::unique_ptr<RecvLink> make_ring_recv_link(const RingPlace& place, RingReceiverTerms terms) {
  return std::make_unique<RingRecvLink>(place, std::move(terms));
}

}  // namespace catenary
