// ControlChannel: authenticated frames over a stream socket whose two ends have proven themselves.
//
// Nothing here waits. send() queues and flush() writes what the socket takes, so a peer that does
// not read costs memory for queued frames (shared between channels where they are the same), and
// nobody's time. One thread at a time. Owns the socket. Failure is a state: once broken() says why,
// nothing more goes out, and receive() gives only what had come before.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "src/base/types.h"
#include "src/bootstrap/frame.h"
#include "src/bootstrap/handshake.h"
#include "src/bootstrap/unshared_fd.h"

namespace catenary {

class ControlChannel {
 public:
  // `session_key` from the handshake on this socket.
  ControlChannel(UnsharedFd fd, const Key& session_key, Side side);

  int fd() const noexcept { return fd_.get(); }

  // Queues a frame and flushes.
  void send(std::shared_ptr<const Frame> frame);
  void send(Frame frame) { send(std::make_shared<const Frame>(std::move(frame))); }
  // True once nothing is left to write.
  bool flush();

  // The next frame that has come, if any. One recv() when nothing has.
  std::optional<Frame> receive();

  // How the connection ended, or null while it has not.
  const std::string* broken() const noexcept { return broken_ ? &*broken_ : nullptr; }
  // Ended by an orderly close or a reset: what the end of a process looks like.
  bool closed_by_peer() const noexcept { return closed_; }

 private:
  std::optional<Frame> next_buffered();
  void break_off(std::string reason, bool closed);

  UnsharedFd fd_;
  Key send_key_;
  Key receive_key_;

  std::deque<std::shared_ptr<const Frame>> queue_;
  Bytes writing_;  // the sealed frame that is on its way, and how much of it is
  std::size_t written_ = 0;
  std::uint64_t send_sequence_ = 0;

  Bytes incoming_;
  std::uint64_t receive_sequence_ = 0;

  std::optional<std::string> broken_;
  bool closed_ = false;
};

}  // namespace catenary
