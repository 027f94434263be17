#include "transports/tcp/address.h"

#include <cstring>

namespace catenary::tcp {
namespace {

struct Wire {
  char magic[4] = {'t', 'c', 'p', '1'};
  std::uint16_t family = 0;
  std::uint16_t port = 0;
  std::byte host[16] = {};
};
static_assert(sizeof(Wire) == 24, "no padding goes out");

}  // namespace

Bytes make_address(const SocketAddress& address) {
  Wire wire;
  wire.family = static_cast<std::uint16_t>(address.family);
  wire.port = address.port;
  std::memcpy(wire.host, address.host.data(), sizeof wire.host);
  const ByteView bytes = std::as_bytes(std::span(&wire, 1));
  return {bytes.begin(), bytes.end()};
}

std::optional<SocketAddress> parse_address(ByteView address) {
  Wire wire;
  if (address.size() != sizeof wire) return std::nullopt;
  std::memcpy(&wire, address.data(), sizeof wire);
  if (std::memcmp(wire.magic, Wire().magic, sizeof wire.magic) != 0) return std::nullopt;
  if (wire.family != AF_INET && wire.family != AF_INET6) return std::nullopt;
  SocketAddress parsed;
  parsed.family = wire.family;
  parsed.port = wire.port;
  std::memcpy(parsed.host.data(), wire.host, sizeof wire.host);
  return parsed;
}

bool reaches(ByteView address, ByteView peer_address) {
  const auto ours = parse_address(address);
  const auto theirs = parse_address(peer_address);
  return ours && theirs && ours->family == theirs->family;
}

}  // namespace catenary::tcp
