// What the user allows: CATENARY_ALGO, NCCL_ALGO and NCCL_PROTO as rules about algorithms.
//
// CATENARY_ALGO is one of our names, and wins where a collective has that algorithm and it runs.
// NCCL_ALGO has NCCL's syntax: "ring,tree" allows these only, "^ring" all but these,
// "allreduce:tree;broadcast: ring" says so for each collective, and a list without a collective,
// which must come first, is for the rest. Its names are NCCL's, each of which stands for our
// nearest, and our own. As with NCCL a list binds AllReduce, AllGather, ReduceScatter, Broadcast
// and Reduce. NCCL_PROTO has the same syntax and is checked; protocols mean nothing here.
//
// What is chosen by cost alone is allowed where nothing else is said; any other algorithm has to be
// named.
//
// A value; any thread; nothing waits. What cannot be understood throws Error.
#pragma once

#include <array>
#include <bitset>
#include <string>
#include <string_view>

#include "src/collective/algorithms.h"

namespace catenary {

// A bit for each entry of a table: of algorithms(), or of protocols.
using NameSet = std::bitset<256>;

class AlgorithmRules {
 public:
  AlgorithmRules();
  // Each may be empty. Throws kInvalidArgument for a CATENARY_ALGO that no collective has, and
  // kInvalidUsage for lists that make no sense.
  AlgorithmRules(std::string_view forced, std::string_view nccl_algo, std::string_view nccl_proto);

  // For a collective that has the algorithm, and ranks that stand so.
  bool allows(Collective collective, const Algorithm& algorithm, const Place& at) const;
  // What to tell who forces an algorithm that does not run where these ranks stand; mostly "".
  std::string passed_over(const Place& at) const;
  // What to tell who forces an algorithm that the collective does not have; mostly "".
  std::string not_ruled(Collective collective) const;
  // " NCCL_ALGO was set to ring.", for messages; empty if nothing was set.
  const std::string& explanation() const { return explanation_; }

 private:
  std::string forced_;
  std::string explanation_;
  std::array<NameSet, kCollectiveCount> allowed_;
};

}  // namespace catenary
