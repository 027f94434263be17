#include "transports/tcp/address.h"

#include <cstring>

#include "src/topology/machine.h"

namespace catenary::tcp {
namespace {

struct Wire {
  char magic[4] = {'t', 'c', 'p', '3'};
  SocketAddressWire socket;
  std::uint64_t machine = 0;
};
static_assert(sizeof(Wire) == 32, "no padding goes out");

}  // namespace

Bytes make_address(const Address& address) {
  Wire wire;
  wire.socket = SocketAddressWire(address.socket);
  wire.machine = address.machine;
  const ByteView bytes = std::as_bytes(std::span(&wire, 1));
  return {bytes.begin(), bytes.end()};
}

std::optional<Address> parse_address(ByteView address) {
  Wire wire;
  if (address.size() != sizeof wire) return std::nullopt;
  std::memcpy(&wire, address.data(), sizeof wire);
  if (std::memcmp(wire.magic, Wire().magic, sizeof wire.magic) != 0) return std::nullopt;
  const std::optional<SocketAddress> socket = wire.socket.address();
  if (!socket) return std::nullopt;
  return Address{*socket, wire.machine};
}

// FNV-1a.
std::uint64_t machine_number() {
  std::uint64_t number = 0xcbf29ce484222325u;
  const std::string id = boot_id();
  for (const char letter : id) {
    number = (number ^ static_cast<unsigned char>(letter)) * 0x100000001b3u;
  }
  return id.empty() ? 0 : number;
}

bool reaches(ByteView address, ByteView peer_address) {
  const auto ours = parse_address(address);
  const auto theirs = parse_address(peer_address);
  return ours && theirs && ours->socket.family == theirs->socket.family;
}

}  // namespace catenary::tcp
