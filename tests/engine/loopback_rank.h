// Two ranks of this process with links between them, and nothing above those.
#pragma once

#include <future>
#include <memory>
#include <utility>

#include "src/transport/link_table.h"
#include "transports/loopback/transport.h"

namespace catenary {

// One of two ranks of this process, which may have memory to lend.
struct LoopbackRank {
  LoopbackRank(const UniqueId& id, int rank, const Config& config, const SharedHeap& heap)
      : membership(id, rank, 2, Wait{}, config),
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

inline std::pair<std::unique_ptr<LoopbackRank>, std::unique_ptr<LoopbackRank>> two_ranks(
    const Config& config, const SharedHeap& heap = {}) {
  const UniqueId id = create_unique_id(config);
  auto other = std::async(std::launch::async,
                          [&] { return std::make_unique<LoopbackRank>(id, 1, config, heap); });
  auto self = std::make_unique<LoopbackRank>(id, 0, config, heap);
  return {std::move(self), other.get()};
}

}  // namespace catenary
