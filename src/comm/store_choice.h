// StoreChoice: what of the operations of a communicator goes past the caches, and who may have the
// kernel copy, which never stores so.
//
// Under the issue lock. Nothing waits or fails.
#pragma once

#include <cstddef>

#include "src/base/types.h"
#include "src/comm/recent_outputs.h"
#include "src/device/executor.h"
#include "src/transport/shared_heap.h"
#include "src/transport/transport.h"

namespace catenary {

class StoreChoice {
 public:
  // `cache_bytes`: what the ranks of this machine share. `heap`: of ours, what peers can map.
  StoreChoice(int nranks, std::size_t cache_bytes, const SharedHeap& heap, const Executor& executor)
      : nranks_(nranks),
        cache_bytes_(cache_bytes),
        least_exceeding_(cache_bytes / static_cast<std::size_t>(2 * nranks)),
        heap_(heap),
        executor_(executor),
        recent_outputs_(cache_bytes) {}

  // Whether the caches do not hold input and output of so many bytes, of all ranks, if they share
  // this machine.
  bool copies_exceed_caches(std::size_t bytes) const { return bytes >= least_exceeding_; }
  // Whether the caches hold all that is touched if it is lent, as what goes to memory of ours that
  // can be lent mostly is.
  bool fit_if_lent(ByteView output, std::size_t touched) const {
    return touched <= cache_bytes_ && heap_.holds(output);
  }
  // That output is written now, by an operation that moves `moved` bytes through the caches.
  // Whether they may hold its place.
  bool was_there(ByteView output, std::size_t moved) {
    return recent_outputs_.note(output.data(), output.size(), moved);
  }
  // Two ranks have the kernel copy together what goes one way and is long. It does not copy past
  // the caches, which only that makes up for.
  Fetching fetching(std::size_t bytes, bool exceeds_caches, bool goes_one_way) const;

 private:
  const int nranks_;
  const std::size_t cache_bytes_;
  const std::size_t least_exceeding_;
  const SharedHeap& heap_;
  const Executor& executor_;
  RecentOutputs recent_outputs_;
};

}  // namespace catenary
