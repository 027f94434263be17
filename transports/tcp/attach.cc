#include "transports/tcp/attach.h"

#include "transports/tcp/address.h"

namespace catenary::tcp {

std::unique_ptr<SocketHub> attach_hub(const TransportContext& context, UnsharedFd listener,
                                      std::span<const Bytes> addresses) {
  TransportContext own = context;
  own.key = derive_key(context.key, "tcp");
  std::vector<SocketPeer> peers;
  const std::uint64_t here =
      parse_address(addresses[static_cast<std::size_t>(context.rank)]).value_or(Address{}).machine;
  for (const Bytes& bytes : addresses) {
    // A rank without an address is never connected to.
    const Address address = parse_address(bytes).value_or(Address{});
    peers.push_back({address.socket, here != 0 && address.machine == here});
  }
  return std::make_unique<SocketHub>(std::move(listener), own, std::move(peers));
}

}  // namespace catenary::tcp
