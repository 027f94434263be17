#include "transports/ofi/attach.h"

#include <algorithm>

#include "transports/ofi/address.h"

namespace catenary::ofi {

std::size_t event_room(const TransportContext& context) {
  constexpr std::size_t kMost = 49152;
  const auto links = static_cast<std::size_t>(context.nranks) * kChannelCount;
  return std::min(kMost, links * 3 * context.slots);
}

std::unique_ptr<PutHub> attach_hub(const TransportContext& context, std::unique_ptr<OfiPort> port,
                                   std::span<const Bytes> addresses, ByteView own,
                                   const PortDecorator& decorate) {
  std::vector<Bytes> names;
  for (const Bytes& address : addresses) {
    names.push_back(reaches(own, address) ? parse_address(address)->name : Bytes());
  }
  port->meet(names);
  TransportContext ours = context;
  ours.key = derive_key(context.key, "ofi");
  return std::make_unique<PutHub>(decorate(std::move(port)), ours);
}

std::vector<std::optional<SocketAddress>> places_beside(std::span<const Bytes> addresses) {
  std::vector<std::optional<SocketAddress>> places;
  for (const Bytes& address : addresses) {
    const std::optional<Address> parsed = parse_address(address);
    places.push_back(parsed ? parsed->beside : std::nullopt);
  }
  return places;
}

}  // namespace catenary::ofi
