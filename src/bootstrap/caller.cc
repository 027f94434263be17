#include "src/bootstrap/caller.h"

#include "src/bootstrap/stream_socket.h"

namespace catenary {
namespace {

// The first bytes on a fresh connection: they always fit into the socket, or something is wrong.
bool send_whole(int fd, ByteView bytes) {
  const Transfer transfer = try_send(fd, bytes);
  return transfer.state == Transfer::State::kMoved && transfer.bytes == bytes.size();
}

}  // namespace

Caller::Caller(UnsharedFd fd, const Key& secret)
    : fd_(std::move(fd)), handshake_{secret, kControlPurpose, {}, {}} {}

Caller::Progress Caller::poll() {
  while (true) {
    const std::size_t wanted = greeted_ ? sizeof(Mac) : sizeof(Greeting);
    const Transfer transfer =
        try_receive(fd_.get(), ByteSpan(bytes_).first(wanted).subspan(filled_));
    if (transfer.state == Transfer::State::kNotYet) return Progress::kWaiting;
    if (transfer.state != Transfer::State::kMoved) {
      why_refused_ = "it has gone before it has said who it is";
      has_gone_ = true;
      return Progress::kRefused;
    }
    filled_ += transfer.bytes;
    if (filled_ < wanted) continue;
    filled_ = 0;
    if (greeted_) return answer() ? Progress::kProven : Progress::kRefused;
    if (!greet()) return Progress::kRefused;
    greeted_ = true;
  }
}

bool Caller::greet() {
  const auto theirs = parse_greeting(Side::kInitiator, bytes_);
  why_refused_ = theirs ? "it does not hold our secret" : "it speaks another protocol";
  if (!theirs || !is_sealed(*theirs, handshake_.key, kControlPurpose)) return false;
  handshake_.initiator = *theirs;
  fill_random(handshake_.acceptor);
  return send_whole(fd_.get(), make_greeting(Side::kAcceptor, handshake_.acceptor));
}

bool Caller::answer() {
  why_refused_ = "it does not hold our secret";
  const ByteView proof = ByteView(bytes_).first(sizeof(Mac));
  if (!equal_secrets(proof, handshake_.proof(Side::kInitiator))) return false;
  return send_whole(fd_.get(), handshake_.proof(Side::kAcceptor));
}

}  // namespace catenary
