#include "transports/tcp/attach.h"

#include "transports/tcp/address.h"

namespace catenary::tcp {

std::unique_ptr<SocketHub> attach_hub(const TransportContext& context, UnsharedFd listener,
                                      std::span<const Bytes> addresses) {
  TransportContext own = context;
  own.key = derive_key(context.key, "tcp");
  std::vector<SocketAddress> peers;
  for (const Bytes& address : addresses) {
    // A rank without an address is never connected to.
    peers.push_back(parse_address(address).value_or(SocketAddress{}));
  }
  return std::make_unique<SocketHub>(std::move(listener), own, std::move(peers));
}

}  // namespace catenary::tcp
