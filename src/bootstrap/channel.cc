#include "src/bootstrap/channel.h"

#include <array>
#include <cerrno>

#include "src/base/error.h"
#include "src/base/size_literals.h"
#include "src/bootstrap/stream_socket.h"

namespace catenary {
namespace {

constexpr std::size_t kReadBytes = 16_KB;

Key direction_key(const Key& session_key, Side sender) {
  return derive_key(session_key, sender == Side::kInitiator ? "from initiator" : "from acceptor");
}

}  // namespace

ControlChannel::ControlChannel(UnsharedFd fd, const Key& session_key, Side side)
    : fd_(std::move(fd)),
      send_key_(direction_key(session_key, side)),
      receive_key_(direction_key(session_key,
                                 side == Side::kInitiator ? Side::kAcceptor : Side::kInitiator)) {}

void ControlChannel::send(std::shared_ptr<const Frame> frame) {
  if (broken_) return;
  queue_.push_back(std::move(frame));
  flush();
}

bool ControlChannel::flush() {
  while (!broken_) {
    if (written_ == writing_.size()) {
      if (queue_.empty()) return true;
      writing_ = seal_frame(send_key_, send_sequence_++, *queue_.front());
      written_ = 0;
      queue_.pop_front();
    }
    const Transfer transfer = try_send(fd_.get(), ByteView(writing_).subspan(written_));
    if (transfer.state == Transfer::State::kNotYet) return false;
    if (transfer.state == Transfer::State::kMoved) {
      written_ += transfer.bytes;
    } else {
      // What the peer sent before it went can still be received; that ends in the same news.
      queue_.clear();
      writing_.clear();
      written_ = 0;
      return true;
    }
  }
  return true;
}

std::optional<Frame> ControlChannel::receive() {
  while (true) {
    if (std::optional<Frame> frame = next_buffered()) return frame;
    if (broken_) return std::nullopt;
    std::array<std::byte, kReadBytes> bytes;
    const Transfer transfer = try_receive(fd_.get(), bytes);
    switch (transfer.state) {
      case Transfer::State::kMoved:
        incoming_.insert(incoming_.end(), bytes.begin(),
                         bytes.begin() + static_cast<std::ptrdiff_t>(transfer.bytes));
        break;
      case Transfer::State::kNotYet: return std::nullopt;
      case Transfer::State::kClosed: break_off("the connection was closed", true); break;
      case Transfer::State::kBroken:
        break_off(errno_text(transfer.error_number), transfer.error_number == ECONNRESET);
        break;
    }
  }
}

std::optional<Frame> ControlChannel::next_buffered() {
  if (incoming_.size() < kFrameHeaderBytes) return std::nullopt;
  const std::optional<FrameHeader> header =
      parse_frame_header(ByteView(incoming_).first(kFrameHeaderBytes));
  if (header && incoming_.size() < header->frame_bytes()) return std::nullopt;
  std::optional<Frame> frame;
  if (header) {
    frame = open_frame(receive_key_, receive_sequence_++,
                       ByteView(incoming_).first(header->frame_bytes()));
  }
  if (!frame) {
    break_off("a frame that the peer cannot have sent", false);
    return std::nullopt;
  }
  incoming_.erase(incoming_.begin(),
                  incoming_.begin() + static_cast<std::ptrdiff_t>(header->frame_bytes()));
  return frame;
}

void ControlChannel::break_off(std::string reason, bool closed) {
  incoming_.clear();
  broken_ = std::move(reason);
  closed_ = closed;
}

}  // namespace catenary
