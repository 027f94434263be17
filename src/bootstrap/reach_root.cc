#include "src/bootstrap/reach_root.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>

#include "src/base/error.h"
#include "src/bootstrap/authenticate.h"
#include "src/bootstrap/caller.h"
#include "src/bootstrap/root_service.h"
#include "src/bootstrap/tcp.h"

namespace catenary {
namespace {

// The pause between two attempts, doubling.
constexpr int kFirstPauseMs = 1;
constexpr int kLongestPauseMs = 50;
// How long the root may fail to prove itself, or, where it must have listened before the id
// existed, to listen at all, before that is an error: a crowd of strangers may get in the way for a
// moment.
constexpr std::int64_t kRefusalPatienceMs = 2000;
constexpr std::int64_t kOneHandshakeMs = 5000;

constexpr const char* kSilence =
    " (the root's process does not answer: is it stopped, or short of file descriptors, ulimit "
    "-n?)";

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
      notice_lost_peers(connection.fd.get(), config_.peer_timeout_s);
      const Key session_key = prove_both(connection.fd.get(), rendezvous_.secret, Side::kInitiator,
                                         kControlPurpose, wait);
      return ControlChannel(std::move(connection.fd), session_key, Side::kInitiator);
    } catch (const Error& error) {
      // One attempt has failed; whether that is the end is for the caller to say.
      if (wait_.is_cancelled()) throw;
      const bool is_silent = connection.fd && error.code() == ErrorCode::kTimeout;
      note(std::string(error.what()) + (is_silent ? kSilence : ""),
           error.code() == ErrorCode::kRemote);
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

  // And again after the pause: an attempt that has no time left would only hide what the last one
  // found out.
  void give_up_or_pause(int pause_ms) {
    give_up_if_due();
    ::poll(nullptr, 0, wait_.deadline.remaining_ms(pause_ms));
    give_up_if_due();
  }

  void give_up_if_due() const {
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
  }

  const Rendezvous& rendezvous_;
  const int rank_;
  const Wait& wait_;
  const Config& config_;
  std::string reason_ = "no answer";
  std::string cannot_listen_;
  std::optional<std::int64_t> refused_since_;
};

}  // namespace

ControlChannel reach_root(const Rendezvous& rendezvous, int rank, const Wait& wait,
                          const Config& config) {
  return Approach(rendezvous, rank, wait, config).channel();
}

}  // namespace catenary
