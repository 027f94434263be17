// Which network interface the control plane listens on.
//
// NCCL_SOCKET_IFNAME is a list of name prefixes; `=` in front wants exact names, `^` excludes those
// listed. NCCL_SOCKET_FAMILY is AF_INET or AF_INET6. Without a list, real interfaces come first,
// then docker*, then loopback; IPv4 before IPv6, and link-local addresses last. Nothing waits.
#pragma once

#include <string>
#include <vector>

#include "src/bootstrap/socket_address.h"

namespace catenary {

struct SocketInterface {
  std::string name;
  SocketAddress address;  // port 0
};

// Those that are up and have an address, in the system's order. Throws Error(kSystem).
std::vector<SocketInterface> list_socket_interfaces();

// AF_INET, AF_INET6, or AF_UNSPEC for "". Throws Error(kInvalidUsage) for anything else.
int parse_socket_family(const std::string& text);

// Of `all` the best one, and then the others that are as good, each with one address; all of one
// family. Throws Error(kInvalidUsage), listing what there is, if none fits.
std::vector<SocketInterface> choose_socket_interfaces(const std::vector<SocketInterface>& all,
                                                      const std::string& names,
                                                      const std::string& family);
SocketInterface choose_socket_interface(const std::vector<SocketInterface>& all,
                                        const std::string& names, const std::string& family);

}  // namespace catenary
