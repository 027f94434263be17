// The two ends of a ring of a RingArena as links.
//
// Threads, waiting, owner: as links (transport.h); they share the arena. Failure: what a peer says
// of its memory is checked, kRemote.
#pragma once

#include <memory>

#include "src/transport/process_memory.h"
#include "src/transport/ring_arena.h"
#include "src/transport/transport.h"

namespace catenary {

// Which ring: between which members, and what rank the other end is.
struct RingPlace {
  std::shared_ptr<const RingArena> arena;
  int from;
  int to;
  int peer;
  Channel channel;
};

struct RingSenderTerms {
  SharedHeap heap;  // our own, which we lend from
  std::shared_ptr<Shuttles> shuttles;
  std::shared_ptr<StageRing> stage;
  std::size_t belt_bytes;
  std::size_t least_fetched;
  std::optional<KernelCopies> where_they_pay;
  PeerReacher reach_peer;  // asked once there is something to be written there
};
std::unique_ptr<SendLink> make_ring_send_link(const RingPlace& place, RingSenderTerms terms);

struct RingReceiverTerms {
  SharedHeap heap;  // our own
  std::shared_ptr<Shuttles> shuttles;
  bool may_be_helped;  // the peer has a core for that
  PeerReach reach;     // of the peer
};
std::unique_ptr<RecvLink> make_ring_recv_link(const RingPlace& place, RingReceiverTerms terms);

}  // namespace catenary
