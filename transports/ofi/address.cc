#include "transports/ofi/address.h"

#include <cstring>

#include "src/topology/machine.h"

namespace catenary::ofi {
namespace {

constexpr char kMagic[4] = {'o', 'f', 'i', '2'};
struct Head {
  char magic[4] = {kMagic[0], kMagic[1], kMagic[2], kMagic[3]};
  std::uint32_t format = 0;
  std::uint32_t provider_bytes = 0;
  std::uint32_t machine_bytes = 0;
  std::uint32_t name_bytes = 0;
  SocketAddressWire beside;
};

void append(Bytes& bytes, ByteView more) { bytes.insert(bytes.end(), more.begin(), more.end()); }

std::string text_of(ByteView bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

Bytes make_address(const Address& address) {
  Head head;
  head.format = address.format;
  head.provider_bytes = static_cast<std::uint32_t>(address.provider.size());
  head.machine_bytes = static_cast<std::uint32_t>(address.machine.size());
  head.name_bytes = static_cast<std::uint32_t>(address.name.size());
  if (address.beside) head.beside = SocketAddressWire(*address.beside);
  Bytes bytes;
  append(bytes, std::as_bytes(std::span(&head, 1)));
  append(bytes, std::as_bytes(std::span(address.provider)));
  append(bytes, std::as_bytes(std::span(address.machine)));
  append(bytes, address.name);
  return bytes;
}

std::optional<Address> parse_address(ByteView address) {
  Head head;
  if (address.size() < sizeof head) return std::nullopt;
  std::memcpy(&head, address.data(), sizeof head);
  if (std::memcmp(head.magic, kMagic, sizeof kMagic) != 0) return std::nullopt;
  const ByteView rest = address.subspan(sizeof head);
  const std::size_t texts = std::size_t{head.provider_bytes} + head.machine_bytes;
  if (head.name_bytes == 0 || texts + head.name_bytes != rest.size()) return std::nullopt;
  const ByteView name = rest.subspan(texts);
  return Address{text_of(rest.first(head.provider_bytes)), head.format,
                 text_of(rest.subspan(head.provider_bytes, head.machine_bytes)),
                 Bytes(name.begin(), name.end()), head.beside.address()};
}

bool reaches(ByteView address, ByteView peer_address) {
  const std::optional<Address> ours = parse_address(address);
  const std::optional<Address> theirs = parse_address(peer_address);
  return ours && theirs && ours->provider == theirs->provider && ours->format == theirs->format &&
         ours->machine == theirs->machine;
}

std::string machine_for(const std::string& provider) { return provider == "shm" ? boot_id() : ""; }

}  // namespace catenary::ofi
