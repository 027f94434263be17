#include "src/transport/socket_link.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "src/base/error.h"
#include "src/bootstrap/stream_socket.h"
#include "src/transport/transport.h"

namespace catenary {
namespace {

// The header lies right before the data, so that a frame is one run of bytes.
constexpr std::size_t kHeaderBytes = 4;
constexpr std::size_t kDataOffset = 64;

// Frames that fill one have a packet to themselves: what room is left would take the beginning of
// the next frame, whose end would not fit into its own. Shorter ones share packets.
Packet packet_of(std::size_t frame_bytes) {
  return frame_bytes > kPacketMessageBytes * 3 / 4 ? Packet::kEnds : Packet::kGoesOn;
}

// Of what changes from now on, not of what has not been used yet: a receiver may leave bytes where
// they are.
bool watch_changes(int epoll, int socket, std::uint32_t events) {
  epoll_event wanted = {};
  wanted.events = events | EPOLLET;
  return ::epoll_ctl(epoll, EPOLL_CTL_ADD, socket, &wanted) == 0;
}

}  // namespace

SocketSender::SocketSender(const SlotRingShape& shape, const LinkEnds& ends)
    : shape_(shape),
      ends_(ends),
      stride_(kDataOffset + shape.slot_bytes),
      memory_(Mapping::anonymous(shape.slots * stride_)) {}

std::byte* SocketSender::frame(std::uint64_t message) const {
  return memory_.data() + message % shape_.slots * stride_ + kDataOffset - kHeaderBytes;
}

ByteSpan SocketSender::try_acquire(std::size_t bytes) {
  CATENARY_ASSERT(bytes != 0 && bytes <= shape_.slot_bytes);
  const std::lock_guard lock(mutex_);
  if (committed_ - sent_ == shape_.slots) send_staged();
  throw_if_failed();
  if (committed_ - sent_ == shape_.slots) return {};
  return {frame(committed_) + kHeaderBytes, bytes};
}

void SocketSender::commit(std::size_t bytes) {
  CATENARY_ASSERT(bytes != 0 && bytes <= shape_.slot_bytes);
  const std::lock_guard lock(mutex_);
  begin_frame(bytes);
  ++committed_;
  send_staged();
}

void SocketSender::commit_from(std::size_t skip, ByteView data) {
  CATENARY_ASSERT(!data.empty() && skip + data.size() <= shape_.slot_bytes);
  const std::lock_guard lock(mutex_);
  begin_frame(skip + data.size());
  std::byte* const begin = frame(committed_);
  const std::size_t before = kHeaderBytes + skip;
  ++committed_;
  const bool is_first = sent_ + 1 == committed_;
  if (is_first && socket_ && failure_.empty()) {
    const ByteView head(begin, before);
    const std::size_t bytes = before + data.size();
    note(try_send(socket_.get(), head, data, packet_of(bytes)), bytes);
    if (sent_ == committed_) return;
  }
  // The rest waits in the slot, for the socket to take more.
  const std::size_t gone = is_first ? std::max(sent_bytes_, before) - before : 0;
  std::memcpy(begin + before + gone, data.data() + gone, data.size() - gone);
  if (!is_first) send_staged();
}

void SocketSender::begin_frame(std::size_t bytes) {
  const auto header = static_cast<std::uint32_t>(bytes);
  std::memcpy(frame(committed_), &header, sizeof header);
}

void SocketSender::connected(UniqueFd socket) {
  const std::lock_guard lock(mutex_);
  socket_ = std::move(socket);
}

void SocketSender::failed(const std::string& why) {
  const std::lock_guard lock(mutex_);
  failure_ = why;
}

bool SocketSender::try_flush() {
  const std::lock_guard lock(mutex_);
  send_staged();
  throw_if_failed();
  return committed_ == sent_;
}

bool SocketSender::pump() {
  const std::lock_guard lock(mutex_);
  send_staged();
  return std::exchange(has_moved_, false);
}

void SocketSender::check_sent() {
  const std::lock_guard lock(mutex_);
  if (committed_ != sent_) throw_if_failed();
}

bool SocketSender::watch_with(int epoll) {
  const std::lock_guard lock(mutex_);
  if (!socket_) return false;
  is_watched_ = is_watched_ || watch_changes(epoll, socket_.get(), EPOLLOUT);
  return is_watched_;
}

void SocketSender::throw_if_failed() const {
  if (failure_.empty()) return;
  throw_lost(ends_.rank, ends_.peer, failure_);
}

void SocketSender::send_staged() {
  while (socket_ && failure_.empty() && sent_ != committed_) {
    std::byte* const begin = frame(sent_);
    std::uint32_t bytes = 0;
    std::memcpy(&bytes, begin, sizeof bytes);
    const ByteView whole(begin, kHeaderBytes + bytes);
    const ByteView rest = whole.subspan(sent_bytes_);
    if (!note(try_send(socket_.get(), rest, {}, packet_of(whole.size())), whole.size())) return;
  }
}

// What has become of the first frame that is not sent. False: no more can be sent now.
bool SocketSender::note(const Transfer& transfer, std::size_t frame_bytes) {
  if (transfer.state == Transfer::State::kNotYet) return false;
  if (transfer.state != Transfer::State::kMoved) {
    failure_ = errno_text(transfer.error_number);
    has_moved_ = true;  // whoever is polled again sees it
    return false;
  }
  has_moved_ = true;
  sent_bytes_ += transfer.bytes;
  if (sent_bytes_ < frame_bytes) return true;
  sent_bytes_ = 0;
  ++sent_;
  return true;
}

SocketReceiver::SocketReceiver(const SlotRingShape& shape, const LinkEnds& ends)
    : shape_(shape),
      ends_(ends),
      memory_(Mapping::anonymous(shape.slots * shape.slot_bytes)),
      lengths_(shape.slots) {}

ByteView SocketReceiver::try_peek() {
  if (received_ == released_) {
    const std::lock_guard lock(mutex_);
    take_ahead();
    while (socket_ && failure_.empty() && has_free_slot() && receive_once()) {
    }
  }
  if (received_ == released_) {
    if (failure_.empty()) return {};
    throw_lost(ends_.rank, ends_.peer, failure_);
  }
  const std::size_t slot = released_ % shape_.slots;
  return {memory_.data() + slot * shape_.slot_bytes, lengths_[slot]};
}

void SocketReceiver::release() { ++released_; }

void SocketReceiver::connected(UniqueFd socket) {
  const std::lock_guard lock(mutex_);
  socket_ = std::move(socket);
}

bool SocketReceiver::is_connected() {
  const std::lock_guard lock(mutex_);
  return static_cast<bool>(socket_);
}

bool SocketReceiver::watch_with(int epoll) {
  const std::lock_guard lock(mutex_);
  if (!socket_) return false;
  is_watched_ = is_watched_ || watch_changes(epoll, socket_.get(), EPOLLIN);
  return is_watched_;
}

// One system call: the rest of a message's data, and what comes behind it as far as there is room
// to read ahead. False when there is nothing more to read, which fewer bytes than were asked for
// say too.
bool SocketReceiver::receive_once() {
  std::array<iovec, 2> parts = {iovec{slot_memory() + data_bytes_, length_ - data_bytes_},
                                iovec{ahead_.data() + ahead_end_, ahead_.size() - ahead_end_}};
  msghdr message = {};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  const ssize_t received = parts[0].iov_len > 0 ? ::recvmsg(socket_.get(), &message, MSG_DONTWAIT)
                                                : ::recv(socket_.get(), parts[1].iov_base,
                                                         parts[1].iov_len, MSG_DONTWAIT);
  if (received > 0) {
    const auto bytes = static_cast<std::size_t>(received);
    const std::size_t data = std::min(bytes, parts[0].iov_len);
    data_bytes_ += data;
    ahead_end_ += bytes - data;
    take_ahead();
    return bytes == parts[0].iov_len + parts[1].iov_len;
  }
  if (received < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  failure_ = received == 0 ? "it closed the connection" : errno_text(errno);
  return false;
}

// Makes messages of what was read ahead, as far as slots are free.
void SocketReceiver::take_ahead() {
  std::size_t begin = 0;
  while (failure_.empty() && has_free_slot()) {
    if (length_ == 0) {
      if (ahead_end_ - begin < kHeaderBytes) break;
      std::memcpy(&length_, ahead_.data() + begin, kHeaderBytes);
      begin += kHeaderBytes;
      if (length_ == 0 || length_ > shape_.slot_bytes) {
        failure_ =
            format("it sent a message of %u bytes for slots of %zu", length_, shape_.slot_bytes);
        break;
      }
    }
    const std::size_t data = std::min(ahead_end_ - begin, length_ - data_bytes_);
    std::memcpy(slot_memory() + data_bytes_, ahead_.data() + begin, data);
    begin += data;
    data_bytes_ += data;
    if (data_bytes_ < length_) break;
    lengths_[received_ % shape_.slots] = length_;
    ++received_;
    length_ = 0;
    data_bytes_ = 0;
  }
  ahead_end_ -= begin;
  if (begin > 0) std::memmove(ahead_.data(), ahead_.data() + begin, ahead_end_);
}

}  // namespace catenary
