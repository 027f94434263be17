#include "src/bootstrap/authenticate.h"

#include <string>

#include "src/base/error.h"
#include "src/bootstrap/stream_socket.h"

namespace catenary {
namespace {

constexpr std::string_view kWhat = "authenticating a connection";

void send_proof(int fd, const Handshake& handshake, Side side, const Wait& wait) {
  send_all(fd, handshake.proof(side), wait, kWhat);
}

void expect_proof(int fd, const Handshake& handshake, Side peer, const Wait& wait) {
  Mac proof;
  receive_all(fd, proof, wait, kWhat);
  if (!equal_secrets(proof, handshake.proof(peer))) {
    throw Error(ErrorCode::kRemote, std::string(kWhat) + ": the peer does not hold our secret");
  }
}

Nonce exchange_greetings(int fd, const Key& key, Side side, std::string_view purpose,
                         const Nonce& mine, const Wait& wait) {
  const Side peer = side == Side::kInitiator ? Side::kAcceptor : Side::kInitiator;
  Greeting greeting;
  // The acceptor speaks only after a greeting that is one: strangers get no answer.
  if (side == Side::kInitiator) send_all(fd, make_greeting(side, mine), wait, kWhat);
  receive_all(fd, greeting, wait, kWhat);
  const std::optional<Nonce> theirs = parse_greeting(peer, greeting);
  if (!theirs) {
    throw Error(ErrorCode::kRemote, std::string(kWhat) + ": the peer speaks another protocol");
  }
  if (side == Side::kAcceptor) {
    if (!is_sealed(*theirs, key, purpose)) {
      throw Error(ErrorCode::kRemote, std::string(kWhat) + ": the peer does not hold our secret");
    }
    send_all(fd, make_greeting(side, mine), wait, kWhat);
  }
  return *theirs;
}

}  // namespace

Key prove_both(int fd, const Key& key, Side side, std::string_view purpose, const Wait& wait) {
  const Nonce mine = sealed_nonce(key, purpose);
  const Nonce theirs = exchange_greetings(fd, key, side, purpose, mine, wait);
  if (side == Side::kInitiator) {
    const Handshake handshake = {key, purpose, mine, theirs};
    send_proof(fd, handshake, side, wait);
    expect_proof(fd, handshake, Side::kAcceptor, wait);
    return handshake.session_key();
  }
  const Handshake handshake = {key, purpose, theirs, mine};
  expect_proof(fd, handshake, Side::kInitiator, wait);
  send_proof(fd, handshake, side, wait);
  return handshake.session_key();
}

}  // namespace catenary
