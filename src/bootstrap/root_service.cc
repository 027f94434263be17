#include "src/bootstrap/root_service.h"

#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <thread>
#include <utility>

#include "src/base/config.h"
#include "src/base/error.h"
#include "src/base/log.h"
#include "src/base/refusals.h"
#include "src/base/scope_exit.h"
#include "src/bootstrap/stream_socket.h"
#include "src/bootstrap/tcp.h"

namespace catenary {
namespace {

// As long as a rank goes on with one handshake.
constexpr int kHolderPatienceMs = 5000;
constexpr std::int64_t kTurnedAwayIsNewsMs = 300'000;
constexpr std::size_t kMaxIdleDesks = 8;
constexpr std::int64_t kIdleDeskMs = 10'000;
constexpr std::int64_t kPauseMs = 50;
constexpr int kEventsAtOnce = 64;
// Few, so that those who have come get a word in before more come.
constexpr int kAcceptsAtOnce = 16;
constexpr std::uint64_t kWakeToken = 0;
constexpr const char* kCrowd = "too many came after it before it had said anything";

void watch(int epoll, int fd, std::uint32_t events, std::uint64_t token) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = token;
  if (::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0) throw_system_error("epoll_ctl", errno);
}

void rewatch(int epoll, int fd, std::uint32_t events, std::uint64_t token) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = token;
  if (::epoll_ctl(epoll, EPOLL_CTL_MOD, fd, &event) != 0) throw_system_error("epoll_ctl", errno);
}

// A program's signals are not for this thread.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

std::string waiting_elsewhere(const std::list<Session>& sessions, const Session& mine) {
  for (const Session& each : sessions) {
    if (&each == &mine || !each.is_open() || each.nranks() == mine.nranks()) continue;
    return format("others wait at the same address for a communicator of %d ranks", each.nranks());
  }
  return "";
}

}  // namespace

RootService& RootService::process() {
  // Never destroyed, since its thread may outlive main. What a forked child inherits has no thread
  // and no sockets any more, and is left alone.
  static std::atomic<RootService*> current = nullptr;
  RootService* service = current.load(std::memory_order_acquire);
  while (service == nullptr || service->pid_ != ::getpid()) {
    std::unique_ptr<RootService> made(new RootService);
    if (current.compare_exchange_strong(service, made.get())) return *made.release();
  }
  return *service;
}

RootService::RootService()
    : pid_(::getpid()),
      epoll_(UnsharedFd::made_by([] { return ::epoll_create1(EPOLL_CLOEXEC); })),
      wake_(UnsharedFd::made_by([] { return ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); })) {
  if (!epoll_ || !wake_) throw_system_error("epoll_create1 or eventfd", errno);
  // Opens what the log needs now: the service writes when there is no descriptor left.
  static_cast<void>(log_enabled(LogLevel::kWarn, Subsystem::kInit));
  watch(epoll_.get(), wake_.get(), EPOLLIN, kWakeToken);
}

void RootService::open(UnsharedFd listener, const Rendezvous& rendezvous, std::int64_t late_s) {
  auto desk = std::make_unique<Desk>();
  desk->listener = std::move(listener);
  desk->rendezvous = rendezvous;
  desk->late_ms = late_s * 1000;
  const std::lock_guard lock(mutex_);
  start_locked(std::move(desk));
}

void RootService::ensure_open(const Rendezvous& rendezvous, std::int64_t late_s) {
  const std::lock_guard lock(mutex_);
  if (listens_locked(rendezvous.root)) return;
  auto desk = std::make_unique<Desk>();
  SocketAddress address = rendezvous.root;
  desk->listener = listen_on(address);
  desk->rendezvous = rendezvous;
  desk->late_ms = late_s * 1000;
  start_locked(std::move(desk));
}

bool RootService::listens_locked(const SocketAddress& address) const {
  return std::ranges::find(listening_, address) != listening_.end();
}

void RootService::start_locked(std::unique_ptr<Desk> desk) {
  listening_.push_back(desk->rendezvous.root);
  incoming_.push_back(std::move(desk));
  // Nobody would ever answer at a desk that has no thread.
  ScopeExit undo([this] {
    listening_.pop_back();
    incoming_.pop_back();
  });
  if (running_) {
    undo.release();
    const std::uint64_t one = 1;
    // Only fails if the counter is full, and then the thread is awake.
    static_cast<void>(!::write(wake_.get(), &one, sizeof one));
    return;
  }
  const SignalsBlocked blocked;
  std::thread thread([this] { run(); });
  ::pthread_setname_np(thread.native_handle(), "catenary-root");
  thread.detach();
  running_ = true;
  undo.release();
}

void RootService::run() noexcept {
  try {
    serve();
  } catch (const std::exception& failure) {
    CATENARY_WARN(std::string("The root service of this process ended: ") + failure.what());
    const std::lock_guard lock(mutex_);
    guests_.clear();
    desks_.clear();
    incoming_.clear();
    listening_.clear();
    running_ = false;
  }
}

void RootService::serve() {
  std::array<epoll_event, kEventsAtOnce> events;
  while (adopt()) {
    const int count = ::epoll_wait(epoll_.get(), events.data(), kEventsAtOnce, timeout_ms());
    if (count < 0 && errno != EINTR) throw_system_error("epoll_wait", errno);
    for (int i = 0; i < count; ++i) {
      const std::uint64_t token = events[static_cast<std::size_t>(i)].data.u64;
      const auto desk = desks_.find(token);
      if (desk != desks_.end()) {
        accept_from(token, *desk->second);
      } else if (token == kWakeToken) {
        std::uint64_t rings = 0;
        static_cast<void>(!::read(wake_.get(), &rings, sizeof rings));
      } else {
        attend(token);
      }
    }
    expire();
  }
}

// Takes over the desks opened meanwhile. False: there is none left, and the thread ends.
bool RootService::adopt() {
  const std::lock_guard lock(mutex_);
  for (std::unique_ptr<Desk>& desk : incoming_) {
    const std::uint64_t token = next_token_++;
    watch(epoll_.get(), desk->listener.get(), EPOLLIN, token);
    desks_.emplace(token, std::move(desk));
  }
  incoming_.clear();
  running_ = !desks_.empty();
  return running_;
}

int RootService::timeout_ms() const {
  int timeout = -1;
  for (const auto& [token, desk] : desks_) {
    const bool someone_passes =
        std::ranges::any_of(desk->lines, [](const auto& line) { return !line.empty(); });
    if (someone_passes || desk->paused) return static_cast<int>(kPauseMs);
    if (desk->idle || !desk->sessions.empty()) timeout = 1000;
  }
  return timeout;
}

void RootService::accept_from(std::uint64_t token, Desk& desk) {
  for (int i = 0; i < kAcceptsAtOnce; ++i) {
    UnsharedFd fd = accept_next(desk.listener.get());
    if (fd) {
      desk.short_of.clear();
      welcome_stranger(desk, std::move(fd));
      continue;
    }
    const int want = errno;
    if (want == EAGAIN || want == EWOULDBLOCK) return;
    if (want == EMFILE || want == ENFILE || want == ENOBUFS || want == ENOMEM) {
      // The system says so before it looks whether there is a caller at all.
      const bool someone_calls = wait_slice(desk.listener.get(), POLLIN, Wait{}, 0);
      if (someone_calls) keep_waiting(token, desk, want);
      return;
    }
    // Anything else is the misfortune of that one caller.
  }
}

// The caller stays in the queue, and the listener ready: look away for a moment.
void RootService::keep_waiting(std::uint64_t token, Desk& desk, int want) {
  desk.short_of = format("the root's process cannot accept connections: %s%s",
                         errno_text(want).c_str(), want == EMFILE ? "; see ulimit -n" : "");
  if (!std::exchange(desk.told_of_want, true)) log_notice(-1, desk.short_of);
  if (const auto& strangers = desk.line(Standing::kStranger); !strangers.empty()) {
    refuse(strangers.front(), kCrowd);
  }
  desk.paused = Deadline::after_ms(kPauseMs);
  rewatch(epoll_.get(), desk.listener.get(), 0, token);
}

void RootService::welcome_stranger(Desk& desk, UnsharedFd fd) {
  if (const auto& strangers = desk.line(Standing::kStranger); strangers.size() >= kMostStrangers) {
    refuse(strangers.front(), kCrowd);
  }
  notice_lost_peers(fd.get(), Config::process().peer_timeout_s);
  const std::uint64_t token = next_token_++;
  auto guest = std::make_unique<Guest>();
  guest->desk = &desk;
  guest->from = SocketAddress::text_of_peer(fd.get());
  guest->caller.emplace(std::move(fd), desk.rendezvous.secret);
  watch(epoll_.get(), guest->caller->fd(), EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, token);
  line_up(token, *guest, Standing::kStranger);
  guests_.emplace(token, std::move(guest));
  attend(token);  // a rank has usually greeted by now
}

void RootService::line_up(std::uint64_t token, Guest& guest, Standing standing) {
  Desk& desk = *guest.desk;
  for (auto& line : desk.lines) std::erase(line, token);
  guest.standing = standing;
  guest.deadline = Deadline::never();
  if (standing == Standing::kMember) return;
  desk.line(standing).push_back(token);
  // Who has proven itself is a rank, however slow, and has as long as the others wait for it.
  guest.deadline = Deadline::after_ms(standing == Standing::kStranger ? kStrangerPatienceMs
                                      : standing == Standing::kHolder ? kHolderPatienceMs
                                                                      : desk.late_ms);
}

// Edge-triggered: everything there is must be read now.
void RootService::attend(std::uint64_t token) {
  const auto found = guests_.find(token);
  if (found == guests_.end()) return;  // dropped earlier in this round
  Guest& guest = *found->second;
  if (guest.caller && !hear_caller(token, guest)) return;
  if (guest.caller) return;
  guest.channel->flush();
  if (!read_frames(token, guest)) drop(token);
}

// False: it is none of ours, and gone.
bool RootService::hear_caller(std::uint64_t token, Guest& guest) {
  const Caller::Progress progress = guest.caller->poll();
  if (progress == Caller::Progress::kRefused) {
    const bool gives_up = guest.caller->has_gone() && guest.caller->has_greeted();
    if (gives_up) drop(token);
    if (!gives_up) refuse(token, guest.caller->why_refused());
    return false;
  }
  if (guest.caller->has_greeted() && guest.standing == Standing::kStranger) {
    // Nobody else can make a seal, but who listens on the way can repeat one.
    if (!guest.desk->greetings.insert(guest.caller->nonce()).second) {
      refuse(token, "it repeats what a member has said");
      return false;
    }
    guest.greeting = guest.caller->nonce();
    line_up(token, guest, Standing::kHolder);
  }
  if (progress == Caller::Progress::kWaiting) return true;
  const Key session_key = guest.caller->session_key();
  guest.channel =
      std::make_unique<ControlChannel>(guest.caller->release(), session_key, Side::kAcceptor);
  guest.caller.reset();
  line_up(token, guest, Standing::kProven);
  return true;
}

bool RootService::read_frames(std::uint64_t token, Guest& guest) {
  while (const std::optional<Frame> frame = guest.channel->receive()) {
    if (guest.refused) continue;
    if (!handle(token, guest, *frame)) return false;
  }
  return guest.channel->broken() == nullptr;
}

bool RootService::handle(std::uint64_t token, Guest& guest, const Frame& frame) {
  if (guest.session == nullptr) return admit(token, guest, frame);
  if (frame.type != MessageType::kQuery) return guest.session->receive(guest.rank, frame);
  guest.session->answer_query(guest.rank, why_missing(*guest.desk, *guest.session));
  return true;
}

// Why ranks of a session may not have come, or "".
std::string RootService::why_missing(const Desk& desk, const Session& session) {
  if (!desk.short_of.empty()) return desk.short_of;
  const std::string elsewhere = waiting_elsewhere(desk.sessions, session);
  const bool is_recent = desk.turned_away_until && !desk.turned_away_until->passed();
  return elsewhere.empty() && is_recent ? desk.turned_away : elsewhere;
}

// The first frame of a guest: which communicator is it for?
bool RootService::admit(std::uint64_t token, Guest& guest, const Frame& frame) {
  const auto join = JoinMessage::parse(frame.payload);
  if (frame.type != MessageType::kJoin || !join) return false;
  Desk& desk = *guest.desk;
  desk.served = true;
  desk.idle.reset();
  Session* session = nullptr;
  for (Session& each : desk.sessions) {
    // A process that is not part of one communicator of a job may come early for the next one. But
    // an id of its own is for one communicator, and other numbers are a mistake.
    if (desk.rendezvous.fixed_address && each.nranks() != join->nranks) continue;
    if (each.awaits(join->rank)) {
      session = &each;
      break;
    }
    if (!each.is_open()) continue;
    // The rank is here already. Threads of one process may well make several communicators through
    // one NCCL_COMM_ID; everything else is a mistake.
    const bool same_process = each.process_of(join->rank).token == join->process.token;
    if (desk.rendezvous.fixed_address && same_process) continue;
    each.refuse_duplicate(*guest.channel, *join);
    guest.refused = true;
    return true;
  }
  if (session == nullptr) session = &desk.sessions.emplace_back(join->nranks, desk.late_ms);
  guest.refused = !session->join(*guest.channel, *join);
  if (guest.refused) return true;
  line_up(token, guest, Standing::kMember);
  guest.session = session;
  guest.rank = join->rank;
  return true;
}

// Of those who have proven nothing: their end is no loss to anybody.
void RootService::refuse(std::uint64_t token, const std::string& why) {
  Guest& guest = *guests_.at(token);
  note_refusal(Refused::kControlConnection, "the root at " + guest.desk->rendezvous.root.text(),
               guest.from, why);
  guest.desk->turned_away = format("%s was turned away: %s", guest.from.c_str(), why.c_str());
  guest.desk->turned_away_until = Deadline::after_ms(kTurnedAwayIsNewsMs);
  drop(token);
}

void RootService::drop(std::uint64_t token) {
  const auto found = guests_.find(token);
  if (found == guests_.end()) return;
  Guest& guest = *found->second;
  Desk& desk = *guest.desk;
  Session* session = guest.session;
  if (session != nullptr) session->lost(guest.rank);
  for (auto& line : desk.lines) std::erase(line, token);
  guests_.erase(found);
  std::erase_if(desk.sessions, [](const Session& each) { return each.is_over(); });
}

void RootService::expel(std::uint64_t token) {
  if (guests_.at(token)->standing == Standing::kProven) return drop(token);
  refuse(token, "it has not proven in time to hold our secret");
}

void RootService::expire() {
  for (auto& [token, desk] : desks_) {
    for (const auto& line : desk->lines) {
      while (!line.empty() && guests_.at(line.front())->deadline.passed()) expel(line.front());
    }
    if (desk->paused && desk->paused->passed()) {
      desk->paused.reset();
      rewatch(epoll_.get(), desk->listener.get(), EPOLLIN, token);
    }
    std::erase_if(desk->sessions, [](const Session& each) { return each.is_over(); });
    for (Session& session : desk->sessions) session.tell_of_late_ranks();
    if (desk->served && desk->sessions.empty() && !desk->idle) {
      desk->idle = Deadline::after_ms(kIdleDeskMs);
    }
  }
  close_idle_desks();
}

// Oldest first, since tokens grow.
void RootService::close_idle_desks() {
  auto idle = static_cast<std::size_t>(std::ranges::count_if(
      desks_, [](const auto& entry) { return entry.second->idle.has_value(); }));
  for (auto entry = desks_.begin(); entry != desks_.end();) {
    Desk& desk = *entry->second;
    if (!desk.idle || !(desk.idle->passed() || idle > kMaxIdleDesks)) {
      ++entry;
      continue;
    }
    --idle;
    for (const auto& line : desk.lines) {
      while (!line.empty()) drop(line.front());
    }
    const std::lock_guard lock(mutex_);
    std::erase(listening_, desk.rendezvous.root);
    entry = desks_.erase(entry);
  }
}

}  // namespace catenary
