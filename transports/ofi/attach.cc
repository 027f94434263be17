#include "transports/ofi/attach.h"

#include <algorithm>
#include <cstring>

#include "src/transport/striped_port.h"
#include "transports/ofi/address.h"

namespace catenary::ofi {

std::size_t event_room(const TransportContext& context) {
  constexpr std::size_t kMost = 49152;
  const auto links = static_cast<std::size_t>(context.nranks) * kChannelCount;
  return std::min(kMost, links * 3 * context.slots);
}

namespace {

std::unique_ptr<PutPort> one_port_over(std::vector<std::unique_ptr<OfiPort>> rails) {
  if (rails.size() == 1) return std::move(rails.front());
  std::vector<std::unique_ptr<PutPort>> ports;
  for (std::unique_ptr<OfiPort>& rail : rails) ports.push_back(std::move(rail));
  return std::make_unique<StripedPort>(std::move(ports));
}

std::vector<std::uint32_t> make_seals(const Key& key, std::size_t ranks) {
  std::vector<std::uint32_t> seals(ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const Key whole = derive_key(key, "seal", std::as_bytes(std::span(&rank, 1)));
    std::memcpy(&seals[rank], whole.data(), sizeof seals[rank]);
  }
  return seals;
}

}  // namespace

std::unique_ptr<PutHub> attach_hub(const TransportContext& context,
                                   std::vector<std::unique_ptr<OfiPort>> rails,
                                   std::span<const Bytes> addresses, ByteView own,
                                   const PortDecorator& decorate) {
  TransportContext ours = context;
  ours.key = derive_key(context.key, "ofi");
  const std::vector<std::uint32_t> seals = make_seals(ours.key, addresses.size());
  for (std::size_t rail = 0; rail < rails.size(); ++rail) {
    std::vector<Bytes> names;
    for (const Bytes& address : addresses) {
      names.push_back(reaches(own, address) ? parse_address(address)->met_by(rail).name : Bytes());
    }
    rails[rail]->meet(names, seals, context.rank);
  }
  return std::make_unique<PutHub>(decorate(one_port_over(std::move(rails))), ours);
}

Key key_beside(const TransportContext& context) { return derive_key(context.key, "beside ofi"); }

std::vector<std::optional<SocketAddress>> places_beside(std::span<const Bytes> addresses,
                                                        std::size_t rail) {
  std::vector<std::optional<SocketAddress>> places;
  for (const Bytes& address : addresses) {
    const std::optional<Address> parsed = parse_address(address);
    places.push_back(parsed ? parsed->met_by(rail).beside : std::nullopt);
  }
  return places;
}

}  // namespace catenary::ofi
