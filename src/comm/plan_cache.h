// PlanCache: the plans of one communicator, compiled on first use and kept. What selects an
// algorithm for an operation is here too: it is asked with plain numbers and answers with a plan.
//
// Threads: under the communicator's issue lock. Nothing waits. Plans stay where they are, so runs
// may point to them while the communicator lives.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "src/collective/algorithms.h"
#include "src/collective/select.h"
#include "src/engine/plan.h"

namespace catenary {

class PlanCache {
 public:
  // `forced`: the one algorithm to use where it can, or "". Throws kInvalidArgument for a name that
  // no algorithm has.
  PlanCache(int rank, int nranks, LinkTable& links, const MachineFacts& machine,
            std::string forced);

  struct Entry {
    const Algorithm* algorithm;
    int root;
    bool scaled;
    std::vector<Plan> lanes;
  };
  // The plan for moving `bytes` (of the longer buffer). root: also the peer of a send or receive.
  const Entry& find(Collective kind, std::size_t bytes, int root, bool scaled);

 private:
  const int rank_;
  const int nranks_;
  LinkTable& links_;
  const MachineFacts machine_;
  const std::string forced_;
  std::vector<std::unique_ptr<Entry>> entries_;
};

}  // namespace catenary
