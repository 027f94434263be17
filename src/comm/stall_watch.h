// StallWatch: what a rank looks at when it does not get on.
//
// Soon it looks for proof: the opening of a collective that lies unread on one of its links shows
// that the peer has begun another collective than this rank under that number. And it tells the
// others once which collective it waits in, so that they can compare.
//
// What proves nothing may still be suspicious: a message from the very rank that we wait for, on a
// link for which we have issued nothing. That rank runs something that we have not issued, and
// after a long time of this both would wait for ever. A peer that is merely late is no error,
// however late; it is named in the log.
//
// Threads: who drives; a member that touches a link also under the communicator's issue lock.
// Nothing waits. Failure: check_unread throws kInvalidUsage, check_gone kRemote.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>

#include "src/comm/ledger.h"
#include "src/engine/group_run.h"
#include "src/engine/schedule_run.h"
#include "src/transport/link_table.h"

namespace catenary {

class StallWatch {
 public:
  // `patience_s` without a move are suspicious; 0: nothing ever is.
  StallWatch(int rank, LinkTable& links, std::int64_t patience_s)
      : rank_(rank), links_(links), patience_ns_(patience_s * 1'000'000'000) {}

  // Whether the collective has not got on for a moment, or, if none waits, the whole communicator,
  // of which `moves` counts the moves. Again and again while that lasts.
  bool is_proof_due(const ScheduleRun* collective, std::uint64_t moves, std::int64_t now_ns);
  // Whether the communicator has not got on for as long as patience lasts. Again and again.
  bool is_suspicion_due(std::uint64_t moves, std::int64_t now_ns);

  // Whether the others are to be told that we wait in the collective: the first time only.
  bool is_untold(const Descriptor& collective);

  // The proof that lies on the link from a peer from which nothing is to be read now.
  std::optional<Error> judge_link(int peer, const Ledger& ledger);
  // Throws if a message lies on the link from `peer`, from which we have issued nothing to receive.
  void check_unread(const GroupRun::Waiting& waiting, int peer, Channel channel);
  // Throws kRemote if the rank that `run` waits for is gone: `how`, or null. It may have sent what
  // we need before it went, so that only counts if a poll of this very run after the news brought
  // nothing. (Two looks in a row prove no poll between them: they may be those of two threads. And
  // others of the communicator's runs may be polled on other streams.) The news may overtake what
  // goes through a network: where no memory is shared, it must be some seconds old.
  void check_gone(const GroupRun& run, const GroupRun::Waiting& waiting, const char* how,
                  std::uint64_t moves, bool shares_memory, std::int64_t now_ns);
  // Logs who is waited for, once a stall.
  void tell(const GroupRun::Waiting& waiting, std::uint64_t moves);

 private:
  // Something that ought to change.
  struct Standstill {
    std::uint64_t state = 0;
    std::int64_t since_ns = 0;
    // Whether it has not for `span_ns`, or not since this last said so.
    bool lasts(std::uint64_t now_at, std::int64_t now_ns, std::int64_t span_ns);
  };

  std::optional<Descriptor> unread_opening(int peer, Channel channel);

  const int rank_;
  LinkTable& links_;
  const std::int64_t patience_ns_;
  Standstill collective_;
  Standstill communicator_;
  Standstill suspicious_;  // of the communicator, too, for as long as patience lasts
  std::optional<std::uint32_t> told_others_;
  std::optional<std::uint64_t> told_log_;
  struct News {
    std::uint64_t polls = 0;
    std::uint64_t moves = 0;
    int rank = kNobody;  // that is gone: a fold waits for one rank after the other
    std::int64_t since_ns = 0;
  };
  std::unordered_map<const GroupRun*, News> gone_;  // of runs that wait for who is gone
};

}  // namespace catenary
