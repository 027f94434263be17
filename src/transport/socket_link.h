// The two ends of a link over a stream socket, with slots staged in local memory.
//
//     frame: bytes (32 bits, native order) | data          one per committed slot
//     turn: zero (32 bits)                                  the next frame comes the other way
//
// The receiver reads no more than a message further than its slots reach, and the socket's own flow
// control holds the sender back. An end exists before its connection: the sender stages until
// connected, the receiver is empty. Frames carry no proof of their own; the handshake before them
// was the proof.
//
// Short messages cost the kernels as much again for packets that only acknowledge them. What goes
// against them does it for nothing, so of two ranks that answer each other's short ones the higher
// lays its own into the stream that carries the lower one's (share()). Long ones would only contend
// for that stream's lock, so after a turn they come over their own connection as before. A sender
// that goes after its last byte loses nothing, unless it leaves unread what came against that,
// which its hub does not. And as the kernel asks only on an idle stream whether the other host is
// there, the hub looks at the one that is not shared.
//
// Threads: the link's thread calls the verbs, another may call connected(), share(), failed() and
// pump() at the same time. Nothing waits. Failure: the verbs throw kRemote once the connection has
// failed and, at the receiver, once what came before has been read.
#pragma once

#include <array>
#include <atomic>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "src/base/mapping.h"
#include "src/base/size_literals.h"
#include "src/base/slot_ring.h"
#include "src/base/types.h"
#include "src/bootstrap/stream_socket.h"
#include "src/bootstrap/unshared_fd.h"

namespace catenary {

// The kernel makes packets of up to 64 KB, in whole segments: 45 of 1,448 bytes, or 7 of 8,948
// where the network takes 9,000 at a time, that is 62,636 bytes. A message of 64 KB would go as a
// long packet and a short one, which costs almost as much as a long one. So this is 61 KB, of which
// halves and quarters are whole cache lines, and the opening of an operation; what is left is for
// headers, libfabric's too. Networks whose segments leave less just go on as with longer messages.
inline constexpr std::size_t kPacketMessageBytes = 61_KB + 64;

// What fits into a segment of an ordinary network with headers, turn and all.
inline constexpr std::size_t kShortMessageBytes = 1440;
// Of which so many in a row show that more are to come.
inline constexpr int kShortInARow = 4;
// And that so many got no answer, that nobody acknowledges them: they go over their own stream.
inline constexpr int kMostUnanswered = 32;

// A connection of a link, and perhaps of the one against it.
class SocketStream {
 public:
  explicit SocketStream(UnsharedFd fd) : fd_(std::move(fd)) {}
  int get() const { return fd_.get(); }
  // How often something was read from it here. Any thread.
  std::uint32_t reads() const { return reads_.load(std::memory_order_relaxed); }
  void note_read() { reads_.fetch_add(1, std::memory_order_relaxed); }

 private:
  const UnsharedFd fd_;
  std::atomic<std::uint32_t> reads_ = 0;
};
using SharedSocket = std::shared_ptr<SocketStream>;

struct LinkEnds {
  int rank = 0;  // whose end it is
  int peer = 0;
  // Whether the sender may lay short messages into the stream that comes from the receiver.
  static bool may_share(int sender, int receiver) { return sender > receiver; }
};

class SocketSender {
 public:
  SocketSender(const SlotRingShape& shape, const LinkEnds& ends);

  ByteSpan try_acquire(std::size_t bytes);
  void commit(std::size_t bytes);
  // What the kernel takes at once goes there straight from the caller's memory.
  void commit_from(std::size_t skip, ByteView data);
  // Whether the kernel has all that was committed.
  bool try_flush();

  void connected(SharedSocket socket);
  // Over which the peer sends to this rank.
  void share(SharedSocket socket);
  void failed(const std::string& why);
  // Sends what the socket takes. Whether it has taken anything since the last time.
  bool pump();
  // Throws kRemote if the connection has failed before all that was committed was sent.
  void check_sent();

 private:
  // What is on its way to the kernel.
  struct OnItsWay {
    std::size_t sent_bytes = 0;
    bool is_begun = false;
    bool ends_with_turn = false;
  };

  std::byte* frame(std::uint64_t message) const;
  void throw_if_failed() const;
  std::size_t begin_frame(std::size_t bytes);
  bool has_socket() const { return way_ != nullptr && failure_.empty(); }
  bool is_shared_way() const { return way_ == shared_; }
  void send_staged();
  bool begin_to_send(std::size_t bytes);
  bool hears_peer();
  bool turn_back();
  bool note(const Transfer& transfer, std::size_t frame_bytes);
  bool take_note(const Transfer& transfer);

  const SlotRingShape shape_;
  const LinkEnds ends_;
  const std::size_t stride_;
  const Mapping memory_;
  std::mutex mutex_;
  // Guarded by mutex_.
  SharedSocket own_;
  SharedSocket shared_;
  SharedSocket way_;  // one of them
  std::string failure_;
  std::uint64_t sent_ = 0;            // messages, counted from the first
  std::uint64_t committed_ = 0;       // messages
  OnItsWay first_;                    // of those that are not sent
  int short_in_row_ = 0;              // over the own way
  int unanswered_ = kMostUnanswered;  // since the peer was last heard on the other one
  std::uint32_t reads_seen_ = 0;      // of that
  bool has_moved_ = false;            // since the last pump()
};

class SocketReceiver {
 public:
  SocketReceiver(const SlotRingShape& shape, const LinkEnds& ends);

  ByteView try_peek();
  void release();

  void connected(SharedSocket socket);
  // Over which this rank sends to the peer.
  void share(SharedSocket socket);
  // Of what was not read so far.
  void failed(const std::string& why);

 private:
  // What was read from a socket and is no message yet.
  struct Way {
    SharedSocket socket;  // guarded by mutex_
    Mapping memory;
    std::size_t begin = 0;
    std::size_t end = 0;
    ByteSpan free(std::size_t most);
  };

  bool receive_once();
  std::size_t receive(const Way& way, std::initializer_list<ByteSpan> parts);
  bool receive_ahead(Way& way);
  bool receive_rest(Way& way);
  bool receive_expected(Way& way);
  void take_ahead();
  bool take_from(Way& way);
  bool take_header(ByteView bytes);
  bool has_free_slot() const { return received_ - released_ < shape_.slots; }
  std::byte* slot_memory() const {
    return memory_.data() + received_ % shape_.slots * shape_.slot_bytes;
  }

  const SlotRingShape shape_;
  const LinkEnds ends_;
  const Mapping memory_;
  std::vector<std::uint32_t> lengths_;  // of the message in each slot
  std::mutex mutex_;
  std::string failure_;  // guarded by mutex_
  // The link's thread only, but for the sockets.
  std::uint64_t received_ = 0;  // messages
  std::uint64_t released_ = 0;  // messages
  std::uint32_t length_ = 0;    // of the data of message received_; 0: its header is not here
  std::size_t data_bytes_ = 0;  // so much of it is here
  std::size_t expected_ = 0;    // the length of the last message
  std::array<Way, 2> ways_;     // the own one, and the one that is shared
  std::size_t way_ = 0;         // on which the next frame comes
};

}  // namespace catenary
