// RootLine: a member's end of its control connection, and what came over it.
//
// Threads: any; one mutex inside, held for no wait. Waiting: only wait_for and wait_for_settled,
// and goodbye for the answer of a thread of its own process. Owner: the Membership. Failure: faults
// of others are a sticky value; the connection's end is one too, if it means that somebody died.
// The destructor says goodbye, so whatever unwinds a Membership does not look like a death; only
// the process's end does.
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "src/base/clock.h"
#include "src/bootstrap/channel.h"
#include "src/bootstrap/message.h"

namespace catenary {

class RootLine {
 public:
  // Joins as `join` says.
  RootLine(ControlChannel channel, const JoinMessage& join, const std::string& root_address);
  ~RootLine() { goodbye(); }
  RootLine(const RootLine&) = delete;
  RootLine& operator=(const RootLine&) = delete;

  // Waits until `reached`, which may look at the state below, says so. Throws the first fault
  // known; kInvalidUsage when cancelled; kTimeout at the deadline, naming who is missing, after
  // telling everyone. `what` is "the ranks to join" or the like.
  void wait_for(const std::function<bool()>& reached, const Wait& wait, std::string_view what);
  // Waits until all who are there have settled `step`, or something ends that wait for good: a
  // fault, or the end of the root. False: not yet.
  bool wait_for_settled(std::uint32_t step, const Wait& wait);

  void send(const Frame& frame);
  std::optional<Error> poll();
  bool has_left(int rank);
  bool ask();
  bool is_answered();
  bool has_root();
  bool lives_with_root(int rank);
  std::string root_text();
  std::vector<ClaimMessage> take_claims();
  void report(const Error& error);
  void goodbye() noexcept;

  // What came, to be looked at in `reached`, or after the wait that it ended.
  const std::optional<WelcomeMessage>& welcome() const { return welcome_; }
  void expect_parts(std::uint32_t round);
  bool has_all_parts() const { return parts_.size() == static_cast<std::size_t>(join_.nranks); }
  std::vector<Bytes> take_parts() { return std::move(parts_); }

 private:
  using Lock = std::unique_lock<std::mutex>;

  void sleep(Lock& lock, const Wait& wait);
  void advance();
  bool accept(const Frame& frame);
  void on_root_lost();
  std::string root_text_locked() const;
  void report_locked(const Error& error);
  bool ask_locked();
  [[noreturn]] void give_up(Lock& lock, const Wait& wait, std::string_view what,
                            std::int64_t waited_ns);
  MissingMessage ask_who_is_missing(Lock& lock);

  const JoinMessage join_;
  const std::string root_address_;

  // Guarded by mutex_.
  std::mutex mutex_;
  std::optional<ControlChannel> channel_;  // empty once the root or we have left
  int waiting_ = 0;  // threads that wait for what comes: they receive, others need not
  bool left_ = false;
  std::optional<Error> fault_;
  bool fault_is_shared_ = false;  // the others know it, or learn it from the root
  ProcessName root_;
  std::set<int> root_ranks_;  // of the root's process, and still there
  std::set<int> left_ranks_;
  std::vector<ClaimMessage> claims_;  // of others, not yet taken
  std::optional<WelcomeMessage> welcome_;
  std::uint32_t round_ = 0;
  std::vector<Bytes> parts_;
  std::optional<MissingMessage> missing_;
  std::uint32_t settled_step_ = 0;
  bool said_goodbye_ = false;
};

}  // namespace catenary
