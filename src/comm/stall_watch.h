// StallWatch: what a rank looks at when nothing of its communicator has moved for a while.
//
// A peer that is merely late is no error, however late; it is named in the log. But if the opening
// of another operation lies unread on a link from the rank we wait for, then that rank runs
// something that we have not issued: the ranks do not issue the same operations in the
// same order, and would wait for ever. That is an error on every rank. So is an opening that
// differs from our own operation of the same number, on a link that we do not look at because we
// take, say, another rank for the root.
//
// Threads: the driver. Nothing waits. Failure: check_x throws kInvalidUsage,
// check_left kRemote.
#pragma once

#include <cstdint>

#include "src/engine/schedule_run.h"
#include "src/transport/link_table.h"

namespace catenary {

class StallWatch {
 public:
  // `patience_s` without a move make a stall; 0: never.
  StallWatch(int rank, LinkTable& links, std::int64_t patience_s)
      : rank_(rank), links_(links), patience_ns_(patience_s * 1'000'000'000) {}

  // Whether nothing moved for so long, now or since the last look.
  bool is_due(std::uint64_t moves, std::int64_t now_ns);
  // Throws if a message lies on the link from `peer`, from which we have issued nothing to receive.
  void check_unread(const ScheduleRun& waiting, int peer, Channel channel);
  // The same for the collective that we wait in, of which nothing was taken from `peer` yet: throws
  // if the opening that lies there has its number, but is not of it.
  void check_opening(const ScheduleRun& waiting, int peer);
  // Throws kRemote if the rank that is waited for has left. It may have sent what we need before it
  // did, so that only counts if a poll after the news brought nothing. (Two looks in a row prove no
  // poll between them: they may be those of two threads.)
  void check_left(const ScheduleRun& waiting, bool has_left, std::uint64_t polls,
                  std::uint64_t moves);
  // Logs who is waited for, once a stall.
  void tell(const ScheduleRun& waiting);

 private:
  const int rank_;
  LinkTable& links_;
  const std::int64_t patience_ns_;
  std::uint64_t moves_seen_ = 0;
  std::int64_t still_since_ns_ = 0;
  bool told_ = false;
  bool left_seen_ = false;
  std::uint64_t polls_at_news_ = 0;
  std::uint64_t moves_at_news_ = 0;
};

}  // namespace catenary
