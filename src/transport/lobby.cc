#include "src/transport/lobby.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "src/base/error.h"
#include "src/bootstrap/socket_address.h"
#include "src/bootstrap/tcp.h"

namespace catenary {
namespace {

// What says something about this process or host, and nothing about who knocks.
bool is_short_of_room(int error_number) {
  return error_number == EMFILE || error_number == ENFILE || error_number == ENOBUFS ||
         error_number == ENOMEM;
}

}  // namespace

Lobby::Lobby(Rules rules, Seat seat) : rules_(std::move(rules)), seat_(std::move(seat)) {}

// One system call tells who has said something, and whether somebody knocks.
void Lobby::serve(int listener, int most) {
  fds_.assign(1, {listener, POLLIN, 0});
  for (const Guest& guest : guests_) fds_.push_back({guest.socket.get(), POLLIN, 0});
  if (::poll(fds_.data(), fds_.size(), 0) > 0) {
    for (std::size_t i = 0; i < guests_.size(); ++i) {
      Guest& guest = guests_[i];
      if (guest.socket && fds_[i + 1].revents != 0 && !attend(guest)) guest.socket = UnsharedFd();
    }
  }
  const bool someone_knocks = fds_[0].revents != 0;
  fds_.clear();
  expel_late();
  if (someone_knocks) let_in(listener, most);
}

void Lobby::expel_late() {
  std::erase_if(guests_, [this](const Guest& guest) {
    const bool is_late = guest.socket && guest.is_stranger() && guest.deadline.passed();
    if (is_late) refuse(guest, "it has not said in time who it is");
    return is_late || !guest.socket;
  });
}

void Lobby::let_in(int listener, int most) {
  for (int i = 0; i < most; ++i) {
    UnsharedFd socket = accept_next(listener);
    if (!socket) {
      // The connection stays in the queue, and the next time tries again.
      if (is_short_of_room(errno)) make_room();
      return;
    }
    notice_lost_peers(socket.get(), rules_.patience_s);
    std::string from = SocketAddress::text_of_peer(socket.get());
    Guest guest = {std::move(socket), std::move(from),
                   LinkHandshake::accept(rules_.key, rules_.rank, rules_.nranks),
                   Deadline::after_ms(kStrangerPatienceMs)};
    if (!attend(guest)) continue;
    const auto strangers = std::ranges::count_if(guests_, &Guest::is_stranger);
    if (guest.is_stranger() && strangers >= static_cast<std::ptrdiff_t>(rules_.most_strangers)) {
      make_room();
    }
    guests_.push_back(std::move(guest));
  }
}

// The oldest of those who have not introduced themselves goes.
void Lobby::make_room() {
  const auto oldest = std::ranges::find_if(guests_, &Guest::is_stranger);
  if (oldest == guests_.end()) return;
  refuse(*oldest, "too many came after it before it had said anything");
  guests_.erase(oldest);
}

// Does what the guest's bytes ask for. False: it is a guest no more.
bool Lobby::attend(Guest& guest) {
  const bool was_stranger = guest.is_stranger();
  const LinkHandshake::State state = guest.handshake.advance(guest.socket.get());
  if (was_stranger && !guest.is_stranger() && !take_introduction(guest)) return false;
  switch (state) {
    case LinkHandshake::State::kBusy: return true;
    case LinkHandshake::State::kDone:
      seat_(guest.handshake.introduction(), std::move(guest.socket));
      return false;
    case LinkHandshake::State::kFailed:
      // Who goes before it has said anything wrong may be a member that gives up, or ends.
      if (guest.handshake.is_refused()) refuse(guest, guest.handshake.failure());
      return false;
  }
  return false;
}

// Who connects once more has given up its last attempt, of which we need not have heard.
bool Lobby::take_introduction(Guest& guest) {
  if (!nonces_.insert(guest.handshake.nonce()).second) {
    refuse(guest, "it repeats what a member has said");
    return false;
  }
  const LinkIntroduction& said = guest.handshake.introduction();
  for (Guest& other : guests_) {
    const LinkIntroduction& before = other.handshake.introduction();
    if (&other != &guest && !other.is_stranger() && before.from == said.from &&
        before.channel == said.channel) {
      other.socket = UnsharedFd();
    }
  }
  return true;
}

void Lobby::refuse(const Guest& guest, const std::string& why) const {
  note_refusal(rules_.door, format("rank %d", rules_.rank), guest.from, why);
}

}  // namespace catenary
