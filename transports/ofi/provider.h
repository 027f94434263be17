// Which provider of libfabric, on which interface or card.
//
// EFA, then verbs, then TCP; or what FI_PROVIDER names, and nothing else. Providers over IP use the
// interface that NCCL_SOCKET_IFNAME and NCCL_SOCKET_FAMILY choose, others the nearest cards. What
// every provider must have is asked for here, and is what EFA and verbs have as well: no order, no
// tags, no threads of its own.
//
// Any thread. The first choice of a process takes a tenth of a second, since libfabric then looks
// for all of its providers. Failure: throws kSystem, or kInvalidUsage if it was asked for by name.
#pragma once

#include <string>
#include <vector>

#include "src/base/config.h"
#include "src/transport/socket_hub.h"
#include "src/transport/transport.h"
#include "transports/ofi/library.h"

namespace catenary::ofi {

struct Provider {
  std::vector<Info> rails;  // one or several, for an endpoint each (src/transport/striped_port.h)
  std::string name;         // such as "tcp;ofi_rxm"; ranks reach each other if it is the same
  std::string reason;       // why this one, for the log
  // The interfaces of the rails if it is over sockets, for whose lost ways libfabric has no word.
  // (Verbs, also named by IP, has.)
  std::vector<SocketAddress> interfaces = {};
};

// Several cards are shared with the neighbours.
Provider choose_provider(const Config& config, const Neighbours& here);

}  // namespace catenary::ofi
