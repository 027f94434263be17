#include "src/bootstrap/socket_interface.h"

#include <ifaddrs.h>
#include <net/if.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "src/base/error.h"

namespace catenary {
namespace {

bool starts_with_any(const std::string& name, const std::vector<std::string>& prefixes) {
  return std::ranges::any_of(prefixes,
                             [&](const auto& prefix) { return name.starts_with(prefix); });
}

class NameFilter {
 public:
  explicit NameFilter(std::string list) {
    if (list.starts_with('^')) excludes_ = true, list.erase(0, 1);
    if (list.starts_with('=')) exact_ = true, list.erase(0, 1);
    for (std::size_t at = 0; at < list.size();) {
      const std::size_t comma = std::min(list.find(',', at), list.size());
      if (comma > at) names_.push_back(list.substr(at, comma - at));
      at = comma + 1;
    }
  }

  bool lets_through(const std::string& name) const {
    if (names_.empty()) return true;
    const bool listed =
        exact_ ? std::ranges::find(names_, name) != names_.end() : starts_with_any(name, names_);
    return listed != excludes_;
  }
  // Who lists names has chosen; only without does our own preference among names count.
  bool chooses() const { return !names_.empty() && !excludes_; }

 private:
  bool excludes_ = false;
  bool exact_ = false;
  std::vector<std::string> names_;
};

// Less is better.
int unsuitability(const SocketInterface& candidate, bool names_chosen) {
  int result = candidate.address.family == AF_INET6 ? 1 : 0;
  if (candidate.address.scope != 0) result += 2;
  if (names_chosen) return result;
  if (candidate.name.starts_with("lo")) return result + 20;
  if (candidate.name.starts_with("docker")) return result + 10;
  return result;
}

}  // namespace

std::vector<SocketInterface> list_socket_interfaces() {
  ifaddrs* found = nullptr;
  if (::getifaddrs(&found) != 0) throw_system_error("getifaddrs", errno);
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(found, ::freeifaddrs);
  std::vector<SocketInterface> all;
  for (const ifaddrs* entry = found; entry != nullptr; entry = entry->ifa_next) {
    if ((entry->ifa_flags & IFF_UP) == 0) continue;
    if (const auto address = SocketAddress::from(entry->ifa_addr)) {
      all.push_back({entry->ifa_name, *address});
    }
  }
  return all;
}

int parse_socket_family(const std::string& text) {
  if (text.empty()) return AF_UNSPEC;
  if (text == "AF_INET") return AF_INET;
  if (text == "AF_INET6") return AF_INET6;
  throw_error(ErrorCode::kInvalidUsage, "NCCL_SOCKET_FAMILY=%s is neither AF_INET nor AF_INET6",
              text.c_str());
}

std::vector<SocketInterface> choose_socket_interfaces(const std::vector<SocketInterface>& all,
                                                      const std::string& names,
                                                      const std::string& family) {
  const NameFilter filter(names);
  const int wanted = parse_socket_family(family);
  std::vector<SocketInterface> chosen;  // all as good as the first
  for (const SocketInterface& candidate : all) {
    if (wanted != AF_UNSPEC && candidate.address.family != wanted) continue;
    if (!filter.lets_through(candidate.name)) continue;
    const int badness = unsuitability(candidate, filter.chooses());
    const int of_chosen =
        chosen.empty() ? badness + 1 : unsuitability(chosen.front(), filter.chooses());
    if (badness > of_chosen) continue;
    if (badness < of_chosen) chosen.clear();
    const auto is_known = [&](const auto& other) { return other.name == candidate.name; };
    if (std::ranges::none_of(chosen, is_known)) chosen.push_back(candidate);
  }
  if (!chosen.empty()) return chosen;
  std::string there;
  for (const SocketInterface& each : all) {
    there += (there.empty() ? "" : ", ") + each.name + " (" + each.address.host_text() + ")";
  }
  throw_error(ErrorCode::kInvalidUsage,
              "no network interface fits NCCL_SOCKET_IFNAME=\"%s\" and NCCL_SOCKET_FAMILY=\"%s\"; "
              "those that are up: %s",
              names.c_str(), family.c_str(), there.empty() ? "none" : there.c_str());
}

SocketInterface choose_socket_interface(const std::vector<SocketInterface>& all,
                                        const std::string& names, const std::string& family) {
  return choose_socket_interfaces(all, names, family).front();
}

}  // namespace catenary
