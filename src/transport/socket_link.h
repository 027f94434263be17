// The two ends of a link over a stream socket, with slots staged in local memory.
//
//     frame: bytes (32 bits, native order) | data          one per committed slot
//
// The receiver reads little further than its slots reach, and the socket's own flow control holds
// the sender back; nothing flows against the data, so a sender that closes after its last byte
// loses nothing. An end exists before its connection: the sender stages until connected, the
// receiver is empty. Frames carry no proof of their own; the handshake before them was the proof.
//
// Threads: the link's thread calls the verbs, another may call connected(), failed() and pump() at
// the same time. Nothing waits. Failure: the verbs throw kRemote once the connection has failed
// and, at the receiver, once what came before has been read.
#pragma once

#include <array>
#include <mutex>
#include <string>
#include <vector>

#include "src/base/mapping.h"
#include "src/base/slot_ring.h"
#include "src/base/types.h"
#include "src/base/unique_fd.h"
#include "src/bootstrap/stream_socket.h"

namespace catenary {

// The kernel makes packets of up to 64 KB, in whole segments: 45 of 1,448 bytes, or 7 of 8,948
// where the network takes 9,000 at a time, that is 62,636 bytes. A message of 64 KB would go as a
// long packet and a short one, which costs almost as much as a long one. So this is 61 KB, of which
// halves and quarters are whole cache lines, and the opening of an operation; what is left is for
// headers, libfabric's too. Networks whose segments leave less just go on as with longer messages.
inline constexpr std::size_t kPacketMessageBytes = 61 * 1024 + 64;

// For errors.
struct LinkEnds {
  int rank = 0;
  int peer = 0;
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

  void connected(UniqueFd socket);
  void failed(const std::string& why);
  // Sends what the socket takes. Whether it has taken anything since the last time.
  bool pump();
  // Throws kRemote if the connection has failed before all that was committed was sent.
  void check_sent();
  // Has `epoll` tell when the socket takes more again. False while there is no socket.
  bool watch_with(int epoll);

 private:
  std::byte* frame(std::uint64_t message) const;
  void throw_if_failed() const;
  void begin_frame(std::size_t bytes);
  void send_staged();
  bool note(const Transfer& transfer, std::size_t frame_bytes);

  const SlotRingShape shape_;
  const LinkEnds ends_;
  const std::size_t stride_;
  const Mapping memory_;
  std::mutex mutex_;
  // Guarded by mutex_.
  UniqueFd socket_;
  std::string failure_;
  std::uint64_t sent_ = 0;       // messages, counted from the first
  std::uint64_t committed_ = 0;  // messages
  std::size_t sent_bytes_ = 0;   // of the frame that is on its way
  bool has_moved_ = false;       // since the last pump()
  bool is_watched_ = false;      // by an epoll
};

class SocketReceiver {
 public:
  SocketReceiver(const SlotRingShape& shape, const LinkEnds& ends);

  ByteView try_peek();
  void release();

  void connected(UniqueFd socket);
  bool is_connected();
  // Has `epoll` tell when there is more to read. False while there is no socket.
  bool watch_with(int epoll);

 private:
  // Short messages come in one read with their headers, many at a time.
  static constexpr std::size_t kAheadBytes = 512;

  bool receive_once();
  void take_ahead();
  bool has_free_slot() const { return received_ - released_ < shape_.slots; }
  std::byte* slot_memory() const {
    return memory_.data() + received_ % shape_.slots * shape_.slot_bytes;
  }

  const SlotRingShape shape_;
  const LinkEnds ends_;
  const Mapping memory_;
  std::vector<std::uint32_t> lengths_;  // of the message in each slot
  std::mutex mutex_;
  UniqueFd socket_;          // guarded by mutex_
  bool is_watched_ = false;  // by an epoll; guarded by mutex_
  // The link's thread only.
  std::string failure_;
  std::uint64_t received_ = 0;  // messages
  std::uint64_t released_ = 0;  // messages
  std::uint32_t length_ = 0;    // of the data of message received_; 0: its header is not here
  std::size_t data_bytes_ = 0;  // so much of it is here
  std::array<std::byte, kAheadBytes> ahead_{};  // what comes behind that
  std::size_t ahead_end_ = 0;
};

}  // namespace catenary
