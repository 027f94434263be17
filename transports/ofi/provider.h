// Which provider of libfabric, on which interface or card.
//
// EFA, then verbs, then TCP; or what FI_PROVIDER names, and nothing else. Providers over IP use the
// interface that NCCL_SOCKET_IFNAME and NCCL_SOCKET_FAMILY choose, others the nearest card. What
// every provider must have is asked for here, and is what EFA and verbs have as well: no order, no
// tags, no threads of its own.
//
// Any thread. The first choice of a process takes a tenth of a second, since libfabric then looks
// for all of its providers. Failure: throws kSystem, or kInvalidUsage if it was asked for by name.
#pragma once

#include <string>

#include "src/base/config.h"
#include "transports/ofi/library.h"

namespace catenary::ofi {

struct Provider {
  Info info;
  std::string name;    // such as "tcp;ofi_rxm"
  std::string reason;  // why this one, for the log
  // Over sockets, for whose lost ways libfabric has no word. (Verbs, also named by IP, has.)
  bool is_over_sockets = false;
};

// Of several cards, `rank` says whose turn it is.
Provider choose_provider(const Config& config, int rank);

}  // namespace catenary::ofi
