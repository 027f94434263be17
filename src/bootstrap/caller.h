// Caller: a connection that has not yet proven anything, on the root's side of the handshake.
//
// A stranger costs a descriptor and these few bytes, for two seconds; it gets no answer before it
// has greeted with a seal, and none that depends on the secret before it has proven to hold it.
// Nothing waits and nothing is allocated. Owns the socket until release().
#pragma once

#include <array>

#include "src/bootstrap/handshake.h"
#include "src/bootstrap/unshared_fd.h"

namespace catenary {

// What both sides of a control connection put under their proofs.
inline constexpr std::string_view kControlPurpose = "control";

class Caller {
 public:
  Caller(UnsharedFd fd, const Key& secret);

  enum class Progress { kWaiting, kProven, kRefused };
  // Does what the bytes that have come allow. After kProven or kRefused, do not call it again.
  Progress poll();

  // With a seal: it holds the secret, or repeats a greeting of somebody who does.
  bool has_greeted() const noexcept { return greeted_; }
  // After that: what it greeted with.
  const Nonce& nonce() const noexcept { return handshake_.initiator; }
  int fd() const noexcept { return fd_.get(); }
  // After kRefused.
  const char* why_refused() const noexcept { return why_refused_; }
  bool has_gone() const noexcept { return has_gone_; }

  // After kProven.
  UnsharedFd release() { return std::move(fd_); }
  Key session_key() const { return handshake_.session_key(); }

 private:
  bool greet();
  bool answer();

  UnsharedFd fd_;
  Handshake handshake_;
  bool greeted_ = false;
  const char* why_refused_ = "";
  bool has_gone_ = false;
  std::array<std::byte, sizeof(Greeting)> bytes_;
  std::size_t filled_ = 0;
};

}  // namespace catenary
