// Lobby: who has connected to a listener and has not proven yet to be a member.
//
// Both sides prove the communicator's key (link_handshake.h). Who has not introduced itself with
// the seal of a holder of that key is a stranger, and is let go soon, or at once when too many
// others come. Holders are dropped for nobody: there is one of each introduction, and who comes
// again takes its own place. Nobody else can make a seal, but who listens on the way can repeat
// one, and is turned away.
//
// Threads: one at a time. Nothing waits. Owner: whoever owns the listener. Failure: those who come
// have it, and are told of by note_refusal() if they are no members.
#pragma once

#include <poll.h>

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "src/base/clock.h"
#include "src/base/refusals.h"
#include "src/bootstrap/unshared_fd.h"
#include "src/transport/link_handshake.h"

namespace catenary {

class Lobby {
 public:
  struct Rules {
    Refused door;  // what those have knocked at who are refused
    int rank = 0;
    int nranks = 0;
    Key key{};
    std::size_t most_strangers = kMostStrangers;
    std::int64_t patience_s = 0;  // with a host that does not answer
  };
  // What becomes of who has proven who it is.
  using Seat = std::function<void(const LinkIntroduction&, UnsharedFd)>;

  Lobby(Rules rules, Seat seat);

  // Lets in as many as `most` of those who knock, and does what the others' bytes ask for.
  void serve(int listener, int most);

 private:
  struct Guest {
    UnsharedFd socket;
    std::string from;
    LinkHandshake handshake;
    Deadline deadline;  // for a stranger
    bool is_stranger() const { return !handshake.is_introduced(); }
  };

  bool attend(Guest& guest);
  bool take_introduction(Guest& guest);
  void expel_late();
  void let_in(int listener, int most);
  void make_room();
  void refuse(const Guest& guest, const std::string& why) const;

  const Rules rules_;
  const Seat seat_;
  std::vector<Guest> guests_;  // oldest first
  std::set<Nonce> nonces_;     // with which they have introduced themselves
  std::vector<pollfd> fds_;    // the listener's, and theirs; empty but in serve()
};

}  // namespace catenary
