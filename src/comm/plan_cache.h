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
  // What links are like: slots of so many bytes each.
  struct Slots {
    std::size_t bytes;
    std::uint32_t count;
  };
  // `forced`: the one algorithm to use where it can, or "". Throws kInvalidArgument for a name that
  // no algorithm has.
  PlanCache(int rank, int nranks, LinkTable& links, const MachineFacts& machine, Slots slots,
            std::string forced);

  struct Entry {
    const Algorithm* algorithm;
    int root;
    int window;
    bool scaled;
    std::vector<Plan> lanes;
  };
  struct Wanted {
    Collective kind;
    std::size_t count;  // as the collective means it
    std::size_t element_bytes;
    int root;  // also the peer of a send or receive
    bool scaled;
  };
  const Entry& find(const Wanted& wanted);

 private:
  const Entry& add(const Wanted& wanted, const Selection& selected, int window);
  int window_for(const Algorithm& algorithm, const Wanted& wanted, int lanes) const;

  const int rank_;
  const int nranks_;
  LinkTable& links_;
  const MachineFacts machine_;
  const Slots slots_;
  const std::string forced_;
  std::vector<std::unique_ptr<Entry>> entries_;
};

}  // namespace catenary
