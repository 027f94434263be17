// The seam between communication and wires.
//
// A link is a one-way ring of equal slots to or from one peer. Four verbs, none of which waits:
// "not yet" is an empty span, never an error. A Transport makes links to the peers it reaches. The
// engine reduces from a peer's slot straight into the next peer's slot, so spans must stay valid
// from try_acquire to commit and from try_peek to release. The verbs and try_flush() are all that
// the links of a new transport must write; what has a default body below is for links whose ends
// share memory (loans, stage, results, help), that send from the user's memory (commit_in_place),
// or that know quicker ways to copy or to ring.
//
// Threads: the links of one channel are used by one thread at a time (their device's driver); those
// of other channels may be used by other threads at once. Waiting: only attach() waits, and only
// until its deadline. Owner: the communicator owns transports, and links are destroyed before them.
// Failure: everything throws Error; after a throw only the destructor may be called. Destructors
// never wait for peers. A dead peer is not a link's business: the control plane tells.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/clock.h"
#include "src/base/config.h"
#include "src/base/copy.h"
#include "src/base/doorbell.h"
#include "src/base/error.h"
#include "src/base/size_literals.h"
#include "src/base/types.h"
#include "src/transport/combination.h"
#include "src/transport/process_memory.h"
#include "src/transport/shared_heap.h"

namespace catenary {

// Memory of ours that several peers can read.
class Stage {
 public:
  virtual ~Stage() = default;
  // The longest message that there is room for, if all is free.
  virtual std::size_t most_bytes() const = 0;
  // Room for one message, or null. It is kept until peers have taken all that was lent of it before
  // the next call.
  virtual std::byte* try_place(std::size_t bytes) = 0;
  // Copies to a part of it, by the stores that are quickest there.
  virtual void write(std::byte* at, ByteView data) = 0;
  // A rank that has not taken everything, or kNobody.
  virtual int holder() = 0;
};

// Whether the kernel copies what the peer cannot map, and how much of it the sender may do.
enum class Fetching : std::uint8_t {
  kNever,
  kByReceiver,  // counted on alone, although it may be helped
  kByBoth,      // sender and receiver have a core each; who waits copies
};

class SendLink {
 public:
  virtual ~SendLink() = default;
  // Room for `bytes` (at most the transport's slot_bytes) in the next free slot, or an empty span
  // while none is free. Calling it again before commit gives the same slot, and with the same bytes
  // the same span. bytes may not be 0.
  virtual ByteSpan try_acquire(std::size_t bytes) = 0;
  // Copies into a part of that room, by the stores that are quickest there.
  virtual void write(std::byte* at, ByteView data) {
    if (!data.empty()) std::memcpy(at, data.data(), data.size());
  }
  // Whether those of so many bytes go past the caches, and so are that much quicker that results
  // are better computed elsewhere, and then written.
  virtual bool writes_past_caches(std::size_t) const noexcept { return false; }
  // Publishes the first `bytes` of the span, 0 < bytes <= what was acquired, and rings the peer.
  virtual void commit(std::size_t bytes) = 0;
  // The same without ringing, for who rings later, and without a fence (doorbell.h).
  virtual void commit_quietly(std::size_t bytes) { commit(bytes); }
  virtual void ring_lightly() noexcept {}
  // Publishes the first `skip` bytes of the span and then `data`, which lies in the caller's memory
  // and may change afterwards. Together they are what was acquired. Where spares_copy(), of data
  // that is long, that costs less than to write it into the span.
  virtual void commit_from(std::size_t skip, ByteView data) {
    write(try_acquire(skip + data.size()).data() + skip, data);
    commit(skip + data.size());
  }
  virtual bool spares_copy() const noexcept { return false; }
  // The same of memory that stays as it is until try_flush() or withdraw(): it is sent from where
  // it lies, without any copy. Where sends_in_place(memory).
  virtual void commit_in_place(std::size_t skip, ByteView memory) { commit_from(skip, memory); }
  virtual bool sends_in_place(ByteView) { return false; }
  // A message of so many bytes will follow soon: a hint, from any thread.
  virtual void prepare(std::size_t) const noexcept {}
  // Whether all that was committed will arrive without us: it lies in the peer's memory, or the
  // kernel has it, and the peer has taken what was lent. Until then somebody must go on calling
  // poll(), and a send is not done.
  virtual bool try_flush() = 0;
  // Whether that is so of all that was committed and is neither lent nor in the caller's memory.
  virtual bool is_flushed_by_commit() const noexcept { return false; }

  // Memory of ours as the peer may read it where it lies, if it can: then the next message may be
  // the Loan, committed in place of the bytes, which must stay as they are until try_flush() says
  // that nothing is lent any more.
  struct Terms {
    Fetching fetching = Fetching::kNever;
    std::byte* result = nullptr;  // where the peer may write what it makes of it; null: nowhere
  };
  virtual std::optional<Loan> try_lend(ByteView, const Terms&) { return std::nullopt; }
  // Where a message to several peers can lie, so that it is copied once and not once for each of
  // them; null: there is no such place that this peer can read. The links of a channel share one.
  virtual Stage* stage() { return nullptr; }
  // The same of what lies on the stage. Nobody has to wait until the peer has taken it.
  virtual Loan lend_staged(ByteView) { return {}; }
  // What was lent, or committed in place, may change from now on, although the peer may still be
  // reading or bytes still be on their way: an operation is given up. Only where is_written_to(), a
  // peer has not seen that yet and writes: for some microseconds if it runs, and no more once it is
  // dead.
  virtual void withdraw() noexcept {}
  virtual bool is_written_to() noexcept { return false; }
  // Copies a piece of what the peer is just copying out of memory that we lent, to where it wants
  // it, if the two do that together; or combines it, if the peer does so in the same way. Whether
  // there was one. For who has nothing else to do.
  virtual bool try_help(const Combination&) { return false; }
};

class RecvLink {
 public:
  virtual ~RecvLink() = default;
  // The oldest slot not yet released, exactly as long as it was committed, or an empty span.
  virtual ByteView try_peek() = 0;
  // Gives the peeked slot back to the sender, and rings it.
  virtual void release() = 0;
  // As SendLink::commit_quietly().
  virtual void release_quietly() { release(); }
  virtual void ring_lightly() noexcept {}

  // The bytes that the loan in the peeked message stands for, or a part of them, until release() or
  // another part is asked for. Where they can only be copied, that is done once for each part: to
  // `into`, if the caller wants them there, which has room for them. `together`: the peer may help
  // with that, and they are there only once copy_together() is no more under way.
  virtual ByteView borrow(const Loan& loan, std::byte* into = nullptr, bool together = false);
  // Copies what was peeked or borrowed, or a part of it, as is quickest there.
  virtual void read(std::byte* to, ByteView from) { copy(to, from.data(), from.size()); }
  // Whether what was borrowed since the last release() was what the peer meant: it may have given
  // the operation up meanwhile.
  virtual bool still_lent() const { return true; }

  // Copies what was borrowed to `into`, all of it, together with the peer if that has nothing else
  // to do; or puts there what it makes with an operand of ours. kUnderWay: the peer still has a
  // piece of it, so call again, until it is kDone.
  struct Taking {
    std::byte* into = nullptr;
    bool past_caches = false;
    const std::byte* operand = nullptr;  // null: it is copied
    Combination combination = {};        // else
    bool operand_last = false;
  };
  // Of fewer bytes one core makes a copy or a combination sooner than two can share it, at least
  // where cores have a cache each.
  static constexpr std::size_t kLeastCopiedTogether = 256_KB;
  static constexpr std::size_t kLeastCombinedTogether = 64_KB;
  enum class Copied : std::uint8_t { kNothing, kUnderWay, kDone };
  virtual Copied copy_together(ByteView, const Taking&) { return Copied::kNothing; }
  // Whether the peer still copies, or is stopped in the middle of it, while it runs: as with
  // SendLink::is_written_to(), memory that is given up is not the owner's before that is over.
  virtual bool is_helped() noexcept { return false; }
  // Help is not waited for any more: a peer that is stopped before it has begun with its piece is
  // to find, once it goes on, that it is not wanted.
  virtual void forbid_help() noexcept {}

  // Whether we can write to the peer's memory at all.
  virtual bool reaches_results() const noexcept { return false; }
  // Where the peer wants what we make of the loan, which says that it does, if we can write there.
  virtual std::byte* place_for_result(const Loan&) { return nullptr; }
  // Whether the peer has not given the operation up. Then, until end_writing(), it will not take
  // that place back, of which some part is written: to be done for some microseconds of work at a
  // time.
  virtual bool try_begin_writing(ByteView /*part*/) { return false; }
  // Copies to that place, or a part of it, by the stores that are quickest there.
  virtual void write_result(std::byte* at, ByteView data, bool past_caches) {
    (past_caches ? copy_streaming : copy)(at, data.data(), data.size());
  }
  // Whether those of so many bytes go past the caches: then results are better stored so at once.
  virtual bool streams_results(std::size_t) const noexcept { return false; }
  virtual void end_writing() {}
};

// Which of the links between two ranks: collectives and point-to-point never share one, nor do the
// lanes of a collective.
enum class Channel : std::uint8_t { kCollective, kPointToPoint, kCollectiveLane1 };
inline constexpr int kChannelCount = 3;
inline constexpr int kMostLanes = 2;
constexpr Channel collective_channel(int lane) {
  return lane == 0 ? Channel::kCollective : Channel::kCollectiveLane1;
}

struct LinkSpec {
  int peer;
  Channel channel;
};

// A block of memory that keeps its place and its pages until its owner frees it. Its number never
// comes again.
struct UserBlock {
  ByteView memory;
  std::uint64_t number = 0;
};
// The block of this process that an address lies in, if it lies in one. Any thread, at any time.
using BlockFinder = std::function<std::optional<UserBlock>(const std::byte*)>;

// What a transport gets to know of the communicator it serves.
struct TransportContext {
  int rank = 0;
  int nranks = 1;
  // Random, the same for all ranks of this communicator and for no other; secret. Whoever connects
  // to a peer proves that it holds it (transports derive their own keys from it).
  std::array<std::byte, 32> key{};
  std::size_t slot_bytes = 64_KB;  // a multiple of 64
  std::uint32_t slots = 16;        // at least 2
  std::size_t belt_bytes = 0;      // that its messages go round, in shared memory, to all peers
  const Config* config = nullptr;
  SharedHeap heap = {};  // of this process
  // Messages of so many bytes and more are copied by the kernel out of memory that is not of the
  // heap, where it can.
  std::size_t least_fetched = SIZE_MAX;
  std::optional<KernelCopies> where_they_pay = {};  // only; none: everywhere
  BlockFinder find_block = {};
  // Wakes who sleeps until something moves, because another thread has moved it. Never empty.
  std::function<void()> wake = [] {};
};

// Which of the ranks that share a machine's memory one is, and how many they are.
struct Neighbours {
  int place = 0;
  int ranks = 1;
};

class Transport {
 public:
  virtual ~Transport() = default;
  virtual std::string_view name() const = 0;

  // Before address(), for networks: neighbours share what the machine has of cards.
  virtual void note_neighbours(const Neighbours&) {}

  // Before links are made: whether the ranks of this machine have to take turns on its cores.
  virtual void note_crowding(bool) {}

  // Opaque to all but this kind of transport: what peers need in order to judge and to reach us.
  // The first call opens what they are to reach, which a network that nobody needs is spared; the
  // others give the same.
  virtual Bytes address() = 0;
  // After address(): what was chosen, or why there is none, in words for people; may be empty.
  virtual std::string about() const { return {}; }
  // Whether a peer with that address could be reached. Symmetric; looks at the addresses only.
  virtual bool reaches(ByteView peer_address) const = 0;
  // Called once by every rank, with the addresses of all ranks in order: proves by really attaching
  // which of the peers that reaches() allows are there. May wait. One entry per rank, true if
  // proven. A peer that cannot be attached is an answer, not an error.
  virtual std::vector<bool> attach(std::span<const Bytes> addresses, const Wait& wait) = 0;

  // After attach(), for proven peers. Both ends of a link are made independently and never wait for
  // each other; what is sent before the other end exists arrives all the same.
  virtual std::unique_ptr<SendLink> connect(const LinkSpec& spec) = 0;
  virtual std::unique_ptr<RecvLink> listen(const LinkSpec& spec) = 0;
  // Whether there is something to look at: the sender's end of a link has come, of which ours may
  // not be made yet. Once a sender has flushed, it has, and a later poll() sees it. True, too,
  // where it is not known and listen() costs nothing that lasts: where memory is shared.
  virtual bool has_come(const LinkSpec& spec) = 0;

  // The longest message that it carries well, if that is less than slots hold: longer ones would be
  // cut once more on the way. What is too long for a slot is cut into such.
  virtual std::size_t longest_message() const { return SIZE_MAX; }
  // Whether the peers it reaches run on this machine, and so compete with us for its cores.
  virtual bool shares_memory() const = 0;
  // Whether the process of a peer is known to have ended, without a word. Where connections tell of
  // that, it need not be known here.
  virtual bool has_ended(int /*peer*/) const { return false; }

  // The bell that peers ring when they commit to us or release our slots. Null: nobody rings, and
  // links must be polled.
  virtual Doorbell* doorbell() = 0;
  // Without a doorbell: becomes readable when poll() may move something, or a link may. To be asked
  // for before the last look, since it tells of what comes after that, and before each sleep. -1:
  // nothing tells just now.
  virtual int wait_descriptor() { return -1; }
  // Moves bytes that need moving (sockets, completion queues). Never waits. Any one thread at a
  // time. Whether any have moved since the last time, by this or by what links did: then it is
  // worth looking again at once, although no message may have come or gone.
  virtual bool poll() { return false; }
  // Throws kRemote if something that was committed can never arrive. Its link throws too, but only
  // when it is used again, which nobody does who waits for an answer.
  virtual void check_sent() {}
  // Asked again and again, with polls in between, before a rank goes in peace: whether all that was
  // flushed would arrive although this transport is destroyed. What a queue pair or a socket
  // library holds is not the kernel's, and dies with us. From the first time on, peers may be told
  // that this rank goes, and nothing more is sent.
  virtual bool try_drain() { return true; }
};

// What both ends of a link throw when its connection has failed: kRemote.
class LostConnection : public Error {
 public:
  LostConnection(int rank, int peer, const std::string& why);
  int peer() const noexcept { return peer_; }

 private:
  int peer_;
};

using Transports = std::vector<std::unique_ptr<Transport>>;

}  // namespace catenary
