// RingArena: one block of memory through which a group of ranks sends without any handshake.
//
//     bell of member 0, bell of member 1, ...            128 bytes each
//     ring 0 -> 0 for collectives, for point-to-point    whole pages each
//     ring 0 -> 1 ...                                    every ordered pair, itself included
//     stages of member 0, of member 1, ...               whole pages each, one a channel
//
// Every member computes where things lie. Zeroed memory is an arena in which nothing was sent yet,
// and pages cost nothing until a link uses them, so the block may be far larger than the machine.
//
// ArenaSeat: one rank's place in an arena, from which its links are made.
//
// Threads: an arena may be shared by any; a seat is used by one thread at a time. Nothing waits.
// Owner: seats and links share the arena, so a rank that leaves early harms nobody. Failure: making
// a link to a rank outside of the group, or the same link twice, throws kInternal.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "src/base/mapping.h"
#include "src/base/slot_ring.h"
#include "src/transport/process_memory.h"
#include "src/transport/stage_ring.h"
#include "src/transport/transport.h"

namespace catenary {

struct RingArenaShape {
  int members;
  SlotRingShape ring;
  std::size_t stage_bytes;

  std::size_t bell_offset(int member) const;
  std::size_t ring_offset(int from, int to, Channel channel) const;
  std::size_t stage_offset(int member, Channel channel) const;
  // Throws kInvalidUsage if no address space could hold that much.
  std::size_t bytes() const;

  bool operator==(const RingArenaShape&) const = default;
};

// As the context says, with room for belts, which each rank uses as much of as it likes: what it
// likes follows from its own core's caches, and places must be the same for all. There is so much
// room for all belts of a rank together; where the share of each is too short to be of use, none.
RingArenaShape arena_shape(const TransportContext& context, int members);

class RingArena {
 public:
  // `memory` holds shape.bytes(); `shared`: other processes map it too.
  RingArena(Mapping memory, const RingArenaShape& shape, bool shared);

  const RingArenaShape& shape() const { return shape_; }
  Doorbell bell(int member) const;
  std::byte* ring(int from, int to, Channel channel) const;
  std::byte* stage(int member, Channel channel) const;
  // Brings in the pages of a ring that every message touches, whichever slot it gets, if the group
  // is small: else the first message in each slot takes some microseconds more.
  void warm(int from, int to, Channel channel) const noexcept;

 private:
  Mapping memory_;
  RingArenaShape shape_;
  bool shared_;
};

class ArenaSeat {
 public:
  // `ranks`: the members in order; the context's rank is one of them.
  ArenaSeat(std::shared_ptr<const RingArena> arena, std::vector<int> ranks,
            const TransportContext& context);

  // Where ranks take turns on a core, they share its caches, and the homes of slots, which are
  // shorter than belts, are better: links that are made from now on use these and shuttles only.
  void note_crowding(bool is_crowded);
  // `heap`: our own, which we lend from. For what of the peer's memory we can reach a sender looks
  // only once there is something to be written there.
  std::unique_ptr<SendLink> connect(const LinkSpec& spec, const SharedHeap& heap,
                                    PeerReacher reach_peer);
  std::unique_ptr<RecvLink> listen(const LinkSpec& spec, const SharedHeap& heap, PeerReach reach);
  Doorbell* doorbell() { return &bell_; }

 private:
  int member_of(int rank) const;
  std::shared_ptr<Shuttles> shuttles_with(int member, Channel channel);
  std::size_t bytes_of_a_belt() const;
  void take(std::vector<bool>& made, int member, const LinkSpec& spec);

  std::shared_ptr<const RingArena> arena_;
  std::vector<int> ranks_;
  int self_;  // as a member
  Doorbell bell_;
  std::vector<bool> sends_made_;
  std::vector<bool> recvs_made_;
  std::vector<std::shared_ptr<Shuttles>> shuttles_;  // by channel and member
  std::array<std::shared_ptr<StageRing>, kChannelCount> stages_;
  std::size_t bytes_of_belts_;  // of all that we send on together
  std::size_t least_fetched_;
  std::optional<KernelCopies> where_they_pay_;
  bool is_crowded_ = false;
};

// The ranks whose addresses `transport` reaches, in order: the group, if reaches() is an
// equivalence.
std::vector<int> reachable_ranks(const Transport& transport, std::span<const Bytes> addresses);

}  // namespace catenary
