#include "src/bootstrap/socket_address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <memory>

#include "src/base/error.h"

namespace catenary {
namespace {

std::uint16_t parse_port(const std::string& text, const std::string& whole) {
  std::uint16_t port = 0;
  const char* end = text.data() + text.size();
  const auto [stop, failure] = std::from_chars(text.data(), end, port);
  if (failure != std::errc() || stop != end || port == 0) {
    throw_error(ErrorCode::kInvalidArgument,
                "\"%s\" is not host:port: the port is not from 1 to 65535", whole.c_str());
  }
  return port;
}

}  // namespace

std::string SocketAddress::host_text() const {
  char text[INET6_ADDRSTRLEN] = "";
  ::inet_ntop(family, host.data(), text, sizeof text);
  return text;
}

std::string SocketAddress::text() const {
  return format(family == AF_INET6 ? "[%s]:%u" : "%s:%u", host_text().c_str(), unsigned{port});
}

SocketAddress::Raw SocketAddress::raw() const {
  Raw raw;
  if (family == AF_INET) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    std::memcpy(&address.sin_addr, host.data(), sizeof address.sin_addr);
    std::memcpy(&raw.storage, &address, raw.bytes = sizeof address);
  } else {
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    address.sin6_port = htons(port);
    address.sin6_scope_id = scope;
    std::memcpy(&address.sin6_addr, host.data(), sizeof address.sin6_addr);
    std::memcpy(&raw.storage, &address, raw.bytes = sizeof address);
  }
  return raw;
}

std::optional<SocketAddress> SocketAddress::from(const sockaddr* address) {
  SocketAddress result;
  if (address == nullptr) return std::nullopt;
  if (address->sa_family == AF_INET) {
    sockaddr_in in;
    std::memcpy(&in, address, sizeof in);
    std::memcpy(result.host.data(), &in.sin_addr, sizeof in.sin_addr);
    result.port = ntohs(in.sin_port);
    return result;
  }
  if (address->sa_family != AF_INET6) return std::nullopt;
  sockaddr_in6 in6;
  std::memcpy(&in6, address, sizeof in6);
  result.family = AF_INET6;
  std::memcpy(result.host.data(), &in6.sin6_addr, sizeof in6.sin6_addr);
  result.port = ntohs(in6.sin6_port);
  result.scope = in6.sin6_scope_id;
  return result;
}

std::string SocketAddress::text_of_peer(int fd) {
  Raw raw;
  raw.bytes = sizeof raw.storage;
  auto* const storage = reinterpret_cast<sockaddr*>(&raw.storage);
  if (::getpeername(fd, storage, &raw.bytes) != 0) return "";
  const std::optional<SocketAddress> address = from(storage);
  return address ? address->text() : "";
}

SocketAddress SocketAddress::resolve(const std::string& host_and_port, int family) {
  const std::size_t colon = host_and_port.rfind(':');
  if (colon == std::string::npos || colon == 0) {
    throw_error(ErrorCode::kInvalidArgument, "\"%s\" is not host:port", host_and_port.c_str());
  }
  const std::uint16_t port = parse_port(host_and_port.substr(colon + 1), host_and_port);
  std::string host = host_and_port.substr(0, colon);
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (!bracketed && host.find(':') != std::string::npos) {
    throw_error(ErrorCode::kInvalidArgument,
                "\"%s\" is not host:port: an IPv6 address needs [brackets]", host_and_port.c_str());
  }
  if (bracketed) host = host.substr(1, host.size() - 2);

  addrinfo hints{};
  hints.ai_family = family;
  hints.ai_socktype = SOCK_STREAM;
  if (bracketed) hints.ai_flags = AI_NUMERICHOST;
  addrinfo* found = nullptr;
  const int failure = ::getaddrinfo(host.c_str(), nullptr, &hints, &found);
  if (failure != 0) {
    throw_error(ErrorCode::kSystem, "the host of \"%s\" is not known: %s", host_and_port.c_str(),
                ::gai_strerror(failure));
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, ::freeaddrinfo);
  for (const addrinfo* entry = found; entry != nullptr; entry = entry->ai_next) {
    if (std::optional<SocketAddress> address = from(entry->ai_addr)) {
      address->port = port;
      return *address;
    }
  }
  throw_error(ErrorCode::kSystem, "the host of \"%s\" has no address", host_and_port.c_str());
}

SocketAddressWire::SocketAddressWire(const SocketAddress& address)
    : family(static_cast<std::uint16_t>(address.family)), port(address.port) {
  std::memcpy(host, address.host.data(), sizeof host);
}

std::optional<SocketAddress> SocketAddressWire::address() const {
  if (family != AF_INET && family != AF_INET6) return std::nullopt;
  SocketAddress address;
  address.family = family;
  address.port = port;
  std::memcpy(address.host.data(), host, sizeof host);
  return address;
}

}  // namespace catenary
