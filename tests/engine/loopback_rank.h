// Ranks of this process with links between them, and nothing above those.
#pragma once

#include <future>
#include <memory>
#include <vector>

#include "src/transport/link_table.h"
#include "transports/loopback/transport.h"

namespace catenary {

// One of them, which may have memory to lend.
struct LoopbackRank {
  LoopbackRank(const UniqueId& id, int rank, int nranks, const Config& config,
               const SharedHeap& heap)
      : membership(id, rank, nranks, Wait{}, config),
        links(loopback_of(membership, config, heap), membership, Wait{}) {}

  static Transports loopback_of(const Membership& membership, const Config& config,
                                const SharedHeap& heap) {
    TransportContext context;
    context.rank = membership.rank();
    context.nranks = membership.nranks();
    context.key = membership.derive_key("transport");
    context.config = &config;
    context.heap = heap;
    Transports transports;
    transports.push_back(loopback::make_transport(context));
    return transports;
  }

  Membership membership;
  LinkTable links;
};

inline std::vector<std::unique_ptr<LoopbackRank>> ranks_of(int nranks, const Config& config,
                                                           const SharedHeap& heap = {}) {
  const UniqueId id = create_unique_id(config);
  std::vector<std::future<std::unique_ptr<LoopbackRank>>> made;
  for (int rank = 0; rank < nranks; ++rank) {
    made.push_back(std::async(std::launch::async, [&, rank] {
      return std::make_unique<LoopbackRank>(id, rank, nranks, config, heap);
    }));
  }
  std::vector<std::unique_ptr<LoopbackRank>> ranks;
  for (auto& one : made) ranks.push_back(one.get());
  return ranks;
}

}  // namespace catenary
