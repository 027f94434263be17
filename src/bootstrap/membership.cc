#include "src/bootstrap/membership.h"

#include <poll.h>

#include <cerrno>

#include "src/base/log.h"
#include "src/bootstrap/authenticate.h"
#include "src/bootstrap/root_service.h"
#include "src/bootstrap/stream_socket.h"
#include "src/bootstrap/tcp.h"
#include "src/bootstrap/wire.h"

namespace catenary {
namespace {

// Between two attempts, doubling.
constexpr int kFirstPauseMs = 1;
constexpr int kLongestPauseMs = 50;
// How long the root may fail to prove itself, or, where it must have listened before the id
// existed, to listen at all, before that is an error: a crowd of strangers may get in the way for a
// moment.
constexpr std::int64_t kRefusalPatienceMs = 2000;
constexpr std::int64_t kOneHandshakeMs = 5000;

void check_rank(int rank, int nranks) {
  if (nranks < 1 || nranks > kMaxRanks) {
    throw_error(ErrorCode::kInvalidArgument, "a communicator of %d ranks: 1 to %d are possible",
                nranks, kMaxRanks);
  }
  if (rank < 0 || rank >= nranks) {
    throw_error(ErrorCode::kInvalidArgument, "rank %d is not from 0 to %d", rank, nranks - 1);
  }
}

// Tries to reach the root until it proves to be one, or until there is no hope.
class Approach {
 public:
  Approach(const Rendezvous& rendezvous, int rank, const Wait& wait, const Config& config)
      : rendezvous_(rendezvous), rank_(rank), wait_(wait), config_(config) {}

  ControlChannel channel() {
    for (int pause_ms = kFirstPauseMs;; pause_ms = std::min(2 * pause_ms, kLongestPauseMs)) {
      if (std::optional<ControlChannel> channel = attempt()) return std::move(*channel);
      give_up_or_pause(pause_ms);
    }
  }

 private:
  std::optional<ControlChannel> attempt() {
    if (rank_ == 0 && rendezvous_.fixed_address) start_root();
    const Wait wait = {Deadline::after_ms(wait_.deadline.remaining_ms(kOneHandshakeMs)),
                       wait_.cancelled};
    Connection connection;
    try {
      connection = connect_once(rendezvous_.root, wait);
      if (!connection.fd) {
        // At a fixed address nobody listens before rank 0 is there, and that is no refusal.
        note(errno_text(connection.error_number),
             connection.error_number == ECONNREFUSED && !rendezvous_.fixed_address);
        return std::nullopt;
      }
      notice_lost_peers(connection.fd.get());
      UnsharedFd fd(std::move(connection.fd));
      const Key session_key =
          prove_both(fd.get(), rendezvous_.secret, Side::kInitiator, kControlPurpose, wait);
      return ControlChannel(std::move(fd), session_key, Side::kInitiator);
    } catch (const Error& error) {
      // One attempt has failed; whether that is the end is for the caller to say.
      if (wait_.is_cancelled()) throw;
      note(error.what(), error.code() == ErrorCode::kRemote);
      return std::nullopt;
    }
  }

  // Another process of the job may be listening there already; then it is the root.
  void start_root() {
    try {
      RootService::process().ensure_open(rendezvous_, config_.init_timeout_s);
    } catch (const Error& error) {
      cannot_listen_ = error.what();
    }
  }

  // `refused`: we were turned away, as opposed to not being heard.
  void note(const std::string& reason, bool refused) {
    reason_ = reason;
    if (!refused) refused_since_.reset();
    if (refused && !refused_since_) refused_since_ = now_ns();
  }

  void give_up_or_pause(int pause_ms) {
    const std::string root = rendezvous_.root.text();
    if (refused_since_ && now_ns() - *refused_since_ > kRefusalPatienceMs * 1'000'000) {
      throw_error(
          ErrorCode::kRemote,
          "rank %d is refused by the root at %s: %s. Either the process that made the id has "
          "ended, or the id or CATENARY_SECRET_FILE is not that of the root%s%s",
          rank_, root.c_str(), reason_.c_str(), cannot_listen_.empty() ? "" : "; ",
          cannot_listen_.c_str());
    }
    if (wait_.is_cancelled()) {
      throw_error(ErrorCode::kInvalidUsage, "rank %d: aborted while connecting to the root at %s",
                  rank_, root.c_str());
    }
    if (wait_.deadline.passed()) {
      throw_error(ErrorCode::kSystem, "rank %d cannot reach the root at %s: %s%s%s", rank_,
                  root.c_str(), reason_.c_str(), cannot_listen_.empty() ? "" : "; ",
                  cannot_listen_.c_str());
    }
    ::poll(nullptr, 0, wait_.deadline.remaining_ms(pause_ms));
  }

  const Rendezvous& rendezvous_;
  const int rank_;
  const Wait& wait_;
  const Config& config_;
  std::string reason_ = "no answer";
  std::string cannot_listen_;
  std::optional<std::int64_t> refused_since_;
};

JoinMessage join_message(int rank, int nranks) {
  return {library_version(), rank, nranks, ProcessName::mine()};
}

ControlChannel approach(const Rendezvous& rendezvous, int rank, int nranks, const Wait& wait,
                 const Config& config) {
  check_rank(rank, nranks);
  return Approach(rendezvous, rank, wait, config).channel();
}

}  // namespace

Membership::Membership(const UniqueId& id, int rank, int nranks, const Wait& wait,
                       const Config& config)
    : rank_(rank),
      nranks_(nranks),
      line_(approach(decode_unique_id(id), rank, nranks, wait, config), join_message(rank, nranks),
            decode_unique_id(id).root.text()) {
  line_.wait_for([&] { return line_.welcome().has_value(); }, wait, "the other ranks to join");
  const Key& salt = line_.welcome()->salt;
  key_ = catenary::derive_key(decode_unique_id(id).secret, "communicator", salt);
  session_ = WireReader(key_from(salt, "session number")).number<std::uint64_t>();
  log_info(
      Subsystem::kBootstrap, -1,
      format("Bootstrap: rank %d of %d has joined session 0x%016llx at %s", rank, nranks,
             static_cast<unsigned long long>(session_), decode_unique_id(id).root.text().c_str()));
}

std::array<std::byte, 32> Membership::derive_key(std::string_view label) const {
  return catenary::derive_key(key_, label);
}

std::vector<Bytes> Membership::all_gather(ByteView mine, const Wait& wait) {
  if (mine.size() > kMaxGatherBytes) {
    throw_error(ErrorCode::kInternal,
                "rank %d gives %zu bytes to an all-gather of the control plane; "
                "%zu are the most",
                rank_, mine.size(), kMaxGatherBytes);
  }
  line_.expect_parts(round_);
  line_.send(GatherMessage{round_, mine}.encode());
  line_.wait_for([&] { return line_.has_all_parts(); }, wait,
                 "the other ranks to exchange addresses");
  ++round_;
  return line_.take_parts();
}

}  // namespace catenary
