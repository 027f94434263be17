// The beginning of a connection that is to carry one link: who are we, and do we hold the same key?
//
//     sender (connects)                           receiver (accepts)
//     from, to, channel, greeting   ------->
//                                   <-------      greeting
//     proof                         ------->
//                                   <-------      proof
//
// What the sender says of itself is part of what both prove, and of the seal of its greeting, so
// the receiver knows from the first message on for which link a holder of the key has come. Nothing
// waits: advance() does what the socket allows. One thread at a time. Failure is a state, since
// whoever connects may be a stranger.
#pragma once

#include <string>

#include "src/bootstrap/handshake.h"
#include "src/bootstrap/stream_socket.h"
#include "src/transport/transport.h"

namespace catenary {

struct LinkIntroduction {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  std::uint32_t channel = 0;
};

class LinkHandshake {
 public:
  enum class State { kBusy, kDone, kFailed };

  static LinkHandshake initiate(const Key& key, const LinkIntroduction& introduction);
  // Accepts introductions to `self` from ranks below `nranks`.
  static LinkHandshake accept(const Key& key, int self, int nranks);

  // `fd`: a non-blocking stream socket; it need not be connected yet.
  State advance(int fd);

  // Whether the socket has taken anything: then it is connected.
  bool has_spoken() const { return sent_ > 0; }
  // Whether the other side has introduced itself, with a seal. Always so for who connects.
  bool is_introduced() const { return awaited_ != Awaited::kIntroduction; }
  const LinkIntroduction& introduction() const { return introduction_; }
  // What it came with, fresh for each connection of a holder: who repeats it is none.
  const Nonce& nonce() const { return initiator_; }
  // The same of who accepts: it is there, if it has proven nothing yet.
  bool is_answered() const { return awaited_ != Awaited::kGreeting; }
  // After kFailed.
  const std::string& failure() const { return failure_; }
  // For what the other side has said. Else the connection has failed.
  bool is_refused() const { return refused_; }
  // The other side closed the connection before the end. It may do so to anybody when strangers
  // press it, so another attempt is worth while.
  bool was_cut() const { return cut_; }

 private:
  enum class Awaited { kIntroduction, kGreeting, kProof, kNothing };

  LinkHandshake(const Key& key, Side side);
  void say(ByteView bytes);
  void await(Awaited what, std::size_t bytes);
  State flush(int fd);
  State fill(int fd);
  bool take_message();
  bool take_introduction();
  bool take_greeting();
  bool take_proof();
  Handshake handshake() const;
  State fail(const Transfer& transfer);
  State fail(std::string why);
  bool refuse(const char* why);

  Key key_;
  Side side_;
  LinkIntroduction introduction_;
  std::uint32_t self_ = 0;
  std::uint32_t nranks_ = 0;
  std::string purpose_;
  Nonce initiator_{};
  Nonce acceptor_{};
  Awaited awaited_ = Awaited::kNothing;
  Bytes outgoing_;
  std::size_t sent_ = 0;
  Bytes incoming_;
  std::size_t received_ = 0;
  std::string failure_;
  bool cut_ = false;
  bool refused_ = false;
};

}  // namespace catenary
