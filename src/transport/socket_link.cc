#include "src/transport/socket_link.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "src/base/error.h"
#include "src/base/size_literals.h"
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

bool is_short(std::size_t message_bytes) { return message_bytes <= kShortMessageBytes; }

constexpr std::array<std::byte, kHeaderBytes> kTurn{};

// So much of short messages is read at a time, and less behind the data of a long one, where only
// the next header is worth while: what is read ahead is copied once more.
constexpr std::size_t kMostAhead = 4_KB + 512;
constexpr std::size_t kMostBehind = 512;

std::size_t ahead_bytes(const SlotRingShape& shape) {
  return std::max(kMostAhead, kHeaderBytes + shape.slot_bytes + kMostBehind);
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
  const std::size_t message_bytes = skip + data.size();
  const std::size_t bytes = begin_frame(message_bytes);
  std::byte* const begin = frame(committed_);
  const std::size_t before = bytes - data.size();
  ++committed_;
  const bool goes_from_there = sent_ + 1 == committed_ && !is_short(message_bytes);
  if (goes_from_there && has_socket() && begin_to_send(message_bytes)) {
    const ByteView head(begin, before);
    note(try_send(way_->get(), head, data, packet_of(bytes)), bytes);
    if (sent_ == committed_) return;
  }
  // The rest waits in the slot, for the socket to take more.
  const std::size_t gone = goes_from_there ? std::max(first_.sent_bytes, before) - before : 0;
  std::memcpy(begin + before + gone, data.data() + gone, data.size() - gone);
  if (!goes_from_there) send_staged();
}

// Returns its length.
std::size_t SocketSender::begin_frame(std::size_t bytes) {
  const auto header = static_cast<std::uint32_t>(bytes);
  std::memcpy(frame(committed_), &header, sizeof header);
  return kHeaderBytes + bytes;
}

void SocketSender::connected(SharedSocket socket) {
  const std::lock_guard lock(mutex_);
  own_ = std::move(socket);
  way_ = own_;
}

void SocketSender::share(SharedSocket socket) {
  const std::lock_guard lock(mutex_);
  shared_ = std::move(socket);
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

void SocketSender::throw_if_failed() const {
  if (failure_.empty()) return;
  throw LostConnection(ends_.rank, ends_.peer, failure_);
}

void SocketSender::send_staged() {
  while (has_socket() && sent_ != committed_) {
    std::byte* const begin = frame(sent_);
    std::uint32_t bytes = 0;
    std::memcpy(&bytes, begin, sizeof bytes);
    if (!begin_to_send(bytes)) return;
    const ByteView whole(begin, kHeaderBytes + bytes);
    const ByteView turn = first_.ends_with_turn ? ByteView(kTurn) : ByteView{};
    const std::size_t of_frame = std::min(first_.sent_bytes, whole.size());
    const Transfer transfer =
        try_send(way_->get(), whole.subspan(of_frame), turn.subspan(first_.sent_bytes - of_frame),
                 packet_of(whole.size()));
    if (!note(transfer, whole.size() + turn.size())) return;
  }
}

// Chooses the way of the next frame, once. False: it is not free yet.
bool SocketSender::begin_to_send(std::size_t bytes) {
  if (first_.is_begun) return true;
  if (is_shared_way()) {
    const bool has_begun_to_turn = first_.sent_bytes > 0;
    const bool stays = !has_begun_to_turn && is_short(bytes) && hears_peer();
    if (!stays && !turn_back()) return false;
  } else {
    short_in_row_ = is_short(bytes) ? std::min(short_in_row_ + 1, kShortInARow) : 0;
    first_.ends_with_turn = shared_ && hears_peer() && short_in_row_ == kShortInARow;
  }
  first_.is_begun = true;
  return true;
}

// Whether it has said something while the last messages were sent.
bool SocketSender::hears_peer() {
  const std::uint32_t reads = shared_->reads();
  const bool has_news = std::exchange(reads_seen_, reads) != reads;
  unanswered_ = has_news ? 0 : std::min(unanswered_ + 1, kMostUnanswered);
  return unanswered_ < kMostUnanswered;
}

bool SocketSender::turn_back() {
  const ByteView rest = ByteView(kTurn).subspan(first_.sent_bytes);
  const Transfer transfer = try_send(way_->get(), rest);
  if (!take_note(transfer) || transfer.bytes < rest.size()) return false;
  first_ = {};
  short_in_row_ = 0;
  way_ = own_;
  return true;
}

// What has become of the first frame that is not sent. False: no more can be sent now.
bool SocketSender::note(const Transfer& transfer, std::size_t frame_bytes) {
  if (!take_note(transfer)) return false;
  if (first_.sent_bytes < frame_bytes) return true;
  if (first_.ends_with_turn) way_ = shared_;
  first_ = {};
  ++sent_;
  return true;
}

bool SocketSender::take_note(const Transfer& transfer) {
  if (transfer.state == Transfer::State::kNotYet) return false;
  has_moved_ = true;  // if it has failed, whoever is polled again sees it
  if (transfer.state != Transfer::State::kMoved) {
    failure_ = errno_text(transfer.error_number);
    return false;
  }
  first_.sent_bytes += transfer.bytes;
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
    while (ways_[way_].socket && failure_.empty() && has_free_slot() && receive_once()) {
    }
    if (received_ == released_) {
      if (failure_.empty()) return {};
      throw LostConnection(ends_.rank, ends_.peer, failure_);
    }
  }
  const std::size_t slot = released_ % shape_.slots;
  return {memory_.data() + slot * shape_.slot_bytes, lengths_[slot]};
}

void SocketReceiver::release() { ++released_; }

void SocketReceiver::connected(SharedSocket socket) {
  const std::lock_guard lock(mutex_);
  ways_[0] = {std::move(socket), Mapping::anonymous(ahead_bytes(shape_))};
}

void SocketReceiver::share(SharedSocket socket) {
  const std::lock_guard lock(mutex_);
  if (!ways_[1].socket) ways_[1] = {std::move(socket), Mapping::anonymous(kMostAhead)};
}

void SocketReceiver::failed(const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (failure_.empty()) failure_ = why;
}

// False when there is nothing more to read, which fewer bytes than were asked for say too.
bool SocketReceiver::receive_once() {
  const std::size_t way_before = way_;
  Way& way = ways_[way_];
  const bool expects_long = way_ == 0 && expected_ > kMostAhead - kHeaderBytes;
  const bool is_full = length_ > 0    ? receive_rest(way)
                       : expects_long ? receive_expected(way)
                                      : receive_ahead(way);
  take_ahead();
  return is_full || way_ != way_before;
}

// One system call. How many bytes have come, in the order of the parts.
std::size_t SocketReceiver::receive(const Way& way, std::initializer_list<ByteSpan> parts) {
  std::array<iovec, 3> pieces;
  const auto end = std::ranges::transform(parts, pieces.begin(), [](ByteSpan part) {
                     return iovec{part.data(), part.size()};
                   }).out;
  msghdr message = {};
  message.msg_iov = pieces.data();
  message.msg_iovlen = static_cast<std::size_t>(end - pieces.begin());
  const ssize_t received = parts.size() > 1 ? ::recvmsg(way.socket->get(), &message, MSG_DONTWAIT)
                                            : ::recv(way.socket->get(), pieces[0].iov_base,
                                                     pieces[0].iov_len, MSG_DONTWAIT);
  if (received > 0) {
    way.socket->note_read();
    return static_cast<std::size_t>(received);
  }
  if (received < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
  failure_ = received == 0 ? "it closed the connection" : errno_text(errno);
  return 0;
}

// Short messages come in one read with their headers, many at a time.
bool SocketReceiver::receive_ahead(Way& way) {
  const ByteSpan room = way.free(kMostAhead);
  const std::size_t bytes = receive(way, {room});
  way.end += bytes;
  return bytes == room.size();
}

// The rest of a message's data, and what comes behind it. While a message is not complete, nothing
// else was read.
bool SocketReceiver::receive_rest(Way& way) {
  const ByteSpan rest(slot_memory() + data_bytes_, length_ - data_bytes_);
  const ByteSpan room = way.free(kMostBehind);
  const std::size_t bytes = receive(way, {rest, room});
  const std::size_t data = std::min(bytes, rest.size());
  data_bytes_ += data;
  way.end += bytes - data;
  return bytes == rest.size() + room.size();
}

// A whole message, if it is as long as the one before: its data come into the slot at once. If not,
// what was read is put behind each other, as if it had been read ahead.
bool SocketReceiver::receive_expected(Way& way) {
  const ByteSpan room = way.free(way.memory.bytes());
  // Behind some bytes of a header.
  if (way.end > 0) return receive_ahead(way);
  const ByteSpan header = room.first(kHeaderBytes);
  const ByteSpan data(slot_memory(), expected_);
  const ByteSpan behind = room.subspan(kHeaderBytes + expected_, kMostBehind);
  const std::size_t bytes = receive(way, {header, data, behind});
  const std::size_t in_slot = std::min(bytes - std::min(bytes, kHeaderBytes), expected_);
  std::uint32_t length = 0;
  if (in_slot > 0) std::memcpy(&length, header.data(), kHeaderBytes);
  if (length >= in_slot && length > 0 && length <= shape_.slot_bytes) {
    length_ = length;
    data_bytes_ = in_slot;
    way.begin = kHeaderBytes + expected_;
    way.end = way.begin + bytes - kHeaderBytes - in_slot;
  } else {
    std::memcpy(header.data() + kHeaderBytes, data.data(), in_slot);
    way.end = bytes;
  }
  return bytes == kHeaderBytes + expected_ + kMostBehind;
}

// Behind what is there, which is little when more is read.
ByteSpan SocketReceiver::Way::free(std::size_t most) {
  std::memmove(memory.data(), memory.data() + begin, end - begin);
  end -= std::exchange(begin, 0);
  return {memory.data() + end, std::min(most, memory.bytes()) - end};
}

// Makes messages of what was read ahead, as far as slots are free.
void SocketReceiver::take_ahead() {
  while (take_from(ways_[way_])) way_ = 1 - way_;
}

// Whether what follows comes the other way.
bool SocketReceiver::take_from(Way& way) {
  while (failure_.empty() && has_free_slot()) {
    const ByteView read(way.memory.data() + way.begin, way.end - way.begin);
    if (length_ == 0) {
      if (read.size() < kHeaderBytes) return false;
      way.begin += kHeaderBytes;
      if (take_header(read)) return true;
      continue;
    }
    const std::size_t data = std::min(read.size(), length_ - data_bytes_);
    std::memcpy(slot_memory() + data_bytes_, read.data(), data);
    way.begin += data;
    data_bytes_ += data;
    if (data_bytes_ < length_) return false;
    lengths_[received_ % shape_.slots] = length_;
    ++received_;
    expected_ = std::exchange(length_, 0);
    data_bytes_ = 0;
  }
  return false;
}

// Whether it is a turn.
bool SocketReceiver::take_header(ByteView bytes) {
  std::memcpy(&length_, bytes.data(), kHeaderBytes);
  if (length_ == 0 && LinkEnds::may_share(ends_.peer, ends_.rank)) return true;
  if (length_ == 0 || length_ > shape_.slot_bytes) {
    failure_ = format("it sent a message of %u bytes for slots of %zu", length_, shape_.slot_bytes);
  }
  return false;
}

}  // namespace catenary
