// Membership: one rank's place in the control plane of a communicator.
//
// Every rank keeps one authenticated TCP connection to the root service (root_service.h) for as
// long as the communicator lives. Over it go the rendezvous, small all-gathers, and news of faults:
// a member whose connection ends without a goodbye is dead, and everybody else hears its rank
// within milliseconds; if the root's own process dies, its ranks are named by each of the others
// itself. And claims: a few bytes that a rank tells all others about itself, whose meaning is
// theirs.
//
// Threads: constructor, all_gather and barrier by one thread at a time; everything else by any.
// Waiting: only what takes a Wait; its errors name the missing ranks. Failure: throws Error; the
// first fault known is sticky. The destructor says goodbye and waits for nobody.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/clock.h"
#include "src/base/config.h"
#include "src/base/error.h"
#include "src/base/types.h"
#include "src/bootstrap/root_line.h"
#include "src/bootstrap/unique_id.h"

namespace catenary {

class Membership {
 public:
  // Joins, and waits for all the ranks. Throws Error: kInvalidArgument for a bad id or rank, or if
  // the ranks do not fit together (every rank gets that); kTimeout "ranks 2, 5 of 8 did not come
  // within 120 s"; kInvalidUsage when cancelled; kRemote if a rank or the root died meanwhile, or
  // if the root refuses the secret; kSystem if the root cannot be reached.
  Membership(const UniqueId& id, int rank, int nranks, const Wait& wait, const Config& config);

  int rank() const noexcept { return rank_; }
  int nranks() const noexcept { return nranks_; }
  // Random, the same for all ranks of this communicator; no secret.
  std::uint64_t session() const noexcept { return session_; }
  // The same for all ranks, different for each label, and secret.
  std::array<std::byte, 32> derive_key(std::string_view label) const;

  // Everybody's bytes, in the order of ranks. Collective. At most kMaxGatherBytes from each.
  std::vector<Bytes> all_gather(ByteView mine, const Wait& wait);
  void barrier(const Wait& wait) { all_gather({}, wait); }

  // The first fault known: a rank that died, or what a rank reported. Costs one recv() that does
  // not wait; may be called every millisecond.
  std::optional<Error> poll() { return line_.poll(); }
  // Tells all other ranks something about this one, in at most kMaxClaimBytes. What equals a claim
  // that was told lately is not told again, whoever it was that claimed it.
  void claim(ByteView words) {
    line_.send(ClaimMessage{rank_, {words.begin(), words.end()}}.encode());
  }
  // What others claimed and a poll brought, once. A rank that never takes is not told the rest.
  std::vector<ClaimMessage> take_claims() { return line_.take_claims(); }
  // Whether a rank is known to have said goodbye. That is no fault, unless somebody waits for it.
  bool has_left(int rank) { return line_.has_left(rank); }
  // Makes `error` the fault of every rank that knows of none, this one included.
  void report(const Error& error) noexcept { line_.report(error); }
  // Tells that this rank has come to `step` of what it does before it leaves: 1, then 2, and so on.
  void settle(std::uint32_t step) { line_.send(SettledMessage{step}.encode()); }
  // Waits until all ranks that have not left are as far. What they told before has come then, by
  // claim or report. True also if there is a fault or no root: nothing more is to be waited for.
  bool wait_for_settled(std::uint32_t step, const Wait& wait) {
    return line_.wait_for_settled(step, wait);
  }
  // Asks whether the root is there still. False: there is none any more.
  bool ask_root() { return line_.ask(); }
  // Whether it has said so since, which a poll brings, or has left.
  bool has_root_answered() { return line_.is_answered(); }
  // False: nothing is heard of anybody any more.
  bool has_root() { return line_.has_root(); }
  bool lives_with_root(int rank) { return line_.lives_with_root(rank); }
  // "ranks 0, 1 (host:pid)": those that live in the root's process, if any are left.
  std::string root_text() { return line_.root_text(); }
  // Goodbye: from now on this rank's silence, or its process's end, is no death.
  void leave() noexcept { line_.goodbye(); }

 private:
  const int rank_;
  const int nranks_;
  RootLine line_;
  Key key_{};
  std::uint64_t session_ = 0;
  std::uint32_t round_ = 0;
};

}  // namespace catenary
