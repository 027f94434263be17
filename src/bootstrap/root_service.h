// RootService: the root's end of every control connection, for all ids made in this process.
//
// One thread per process, asleep in epoll, started with the first id and gone when nobody needs it.
// It is detached and touches nothing that ends with the process, so exit never waits for it. An id
// has a desk: a listener, the secret, and the sessions of the communicators made through it. A desk
// closes a while after the last member has left, so that an id can be used again; one that nobody
// came to stays until the process ends.
//
// Threads: open and ensure_open from any, all the rest on the service's own. Nothing waits but that
// thread for events. Who connects is a stranger, one of kMostStrangers of its desk at most, until
// it greets as only a holder of the secret can; holders never make way for strangers, nor for each
// other. Failure: a broken member is its session's business. If the service itself cannot go on (no
// memory), it closes everything, which every member notices.
#pragma once

#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "src/base/types.h"
#include "src/bootstrap/caller.h"
#include "src/bootstrap/session.h"
#include "src/bootstrap/unique_id.h"

namespace catenary {

class RootService {
 public:
  // The process's own; a forked child gets a new one.
  static RootService& process();

  // Serves an id on a listener. `late_s`: how long a failed rendezvous is remembered for late
  // comers.
  void open(UnsharedFd listener, const Rendezvous& rendezvous, std::int64_t late_s);
  // Listens on the rendezvous' own address unless this process already does. Throws Error(kSystem).
  void ensure_open(const Rendezvous& rendezvous, std::int64_t late_s);

 private:
  // How far a guest has come: connected, greeted with a seal, proven, member of a session. Who does
  // not come further within its time is dropped.
  enum class Standing : std::uint8_t { kStranger, kHolder, kProven, kMember };
  static constexpr int kPassing = 3;
  struct Desk {
    UnsharedFd listener;
    Rendezvous rendezvous;
    std::int64_t late_ms = 0;
    std::list<Session> sessions;
    std::deque<std::uint64_t> lines[kPassing];  // guests by standing, oldest first
    std::set<Nonce> greetings;                  // of guests, each good for one of them
    auto& line(Standing standing) { return lines[static_cast<std::size_t>(standing)]; }
    bool served = false;
    std::optional<Deadline> idle;    // when to close
    std::optional<Deadline> paused;  // when to accept again
    std::string short_of;            // for want of what a caller waits in the queue; "" mostly
    bool told_of_want = false;       // in the log
    std::string turned_away;         // who was last, and why
    std::optional<Deadline> turned_away_until;  // when that is no news any more
  };
  struct Guest {
    Desk* desk;
    std::string from;
    Standing standing = Standing::kStranger;
    std::optional<Nonce> greeting;            // once it is a holder
    std::optional<Caller> caller;             // until it has proven itself
    std::unique_ptr<ControlChannel> channel;  // from then on
    Session* session = nullptr;               // null before it is a member, and if it was refused
    int rank = kNobody;
    bool refused = false;
    Deadline deadline = Deadline::never();
  };

  RootService();
  void start_locked(std::unique_ptr<Desk> desk);
  bool listens_locked(const SocketAddress& address) const;

  void run() noexcept;
  void serve();
  bool adopt();
  int timeout_ms() const;
  void accept_from(std::uint64_t token, Desk& desk);
  void keep_waiting(std::uint64_t token, Desk& desk, int want);
  void welcome_stranger(Desk& desk, UnsharedFd fd);
  void attend(std::uint64_t token);
  bool hear_caller(std::uint64_t token, Guest& guest);
  void refuse(std::uint64_t token, const std::string& why);
  void line_up(std::uint64_t token, Guest& guest, Standing standing);
  bool read_frames(std::uint64_t token, Guest& guest);
  bool handle(std::uint64_t token, Guest& guest, const Frame& frame);
  static std::string why_missing(const Desk& desk, const Session& session);
  bool admit(std::uint64_t token, Guest& guest, const Frame& frame);
  void drop(std::uint64_t token);
  void expel(std::uint64_t token);
  void expire();
  void close_idle_desks();

  const int pid_;
  UnsharedFd epoll_;
  UnsharedFd wake_;

  // Guarded by mutex_.
  std::mutex mutex_;
  bool running_ = false;
  std::vector<std::unique_ptr<Desk>> incoming_;
  std::vector<SocketAddress> listening_;  // incoming and adopted

  // The service's thread only.
  std::uint64_t next_token_ = 1;
  std::map<std::uint64_t, std::unique_ptr<Desk>> desks_;
  std::map<std::uint64_t, std::unique_ptr<Guest>> guests_;
};

}  // namespace catenary
