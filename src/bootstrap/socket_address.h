// SocketAddress: an IPv4 or IPv6 address with its port, as a value.
//
// Only resolve() may wait, for a name server. Fails with Error(kInvalidArgument) on text that is no
// address, and kSystem for a name that is not known.
#pragma once

#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "src/base/types.h"

namespace catenary {

struct SocketAddress {
  int family = AF_INET;              // or AF_INET6
  std::array<std::byte, 16> host{};  // IPv4 fills the first 4
  std::uint16_t port = 0;
  std::uint32_t scope = 0;  // of a link-local IPv6 address

  bool operator==(const SocketAddress&) const = default;
  // "192.0.2.1:80", "[2001:db8::1]:80".
  std::string text() const;
  std::string host_text() const;

  // What the socket calls want.
  struct Raw {
    sockaddr_storage storage{};
    socklen_t bytes = 0;
    const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  };
  Raw raw() const;
  // Of the other end of a connected socket, as text; "" if it has none any more.
  static std::string text_of_peer(int fd);
  // nullopt for other families.
  static std::optional<SocketAddress> from(const sockaddr* address);
  // "host:port", where the host is IPv4, IPv6 in brackets, or a name. `family` AF_UNSPEC: either.
  static SocketAddress resolve(const std::string& host_and_port, int family);
};

// The same for messages, without scope: 20 bytes without padding. Family 0 is no address.
struct SocketAddressWire {
  std::uint16_t family = 0;
  std::uint16_t port = 0;
  std::byte host[16] = {};

  SocketAddressWire() = default;
  explicit SocketAddressWire(const SocketAddress& address);
  std::optional<SocketAddress> address() const;
};
static_assert(sizeof(SocketAddressWire) == 20);

}  // namespace catenary
