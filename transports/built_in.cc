#include "transports/built_in.h"

#include <algorithm>
#include <cctype>
#include <string>
#include <utility>

#include "src/base/error.h"
#include "src/base/log.h"
#include "transports/loopback/transport.h"
#include "transports/ofi/transport.h"
#include "transports/shm/transport.h"
#include "transports/tcp/transport.h"

namespace catenary {
namespace {

// The names that NCCL's users know its networks by, in small letters.
constexpr std::pair<std::string_view, std::string_view> kNets[] = {
    {"ofi", ofi::kName},    {"libfabric", ofi::kName}, {"aws libfabric", ofi::kName},
    {"socket", tcp::kName}, {"tcp", tcp::kName},
};

std::vector<std::string_view> split_names(std::string_view list) {
  std::vector<std::string_view> names;
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    if (comma != 0) names.push_back(list.substr(0, comma));
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return names;
}

bool is_allowed(const Config& config, std::string_view name) {
  const std::vector<std::string_view> allowed = split_names(config.transports);
  return allowed.empty() || std::ranges::find(allowed, name) != allowed.end();
}

// FI_PROVIDER can only be meant for libfabric, unless it just rules some providers out. But other
// libraries read it, too: it must be them where we have no libfabric, or must not use it.
bool names_a_provider(const Config& config) {
  return !config.fi_provider.empty() && config.fi_provider.front() != '^' &&
         ofi::absence() == nullptr && is_allowed(config, ofi::kName);
}

// Where nothing else says which network: if of those only libfabric is allowed, by its name.
bool allows_libfabric_only(const Config& config) {
  return !config.transports.empty() && is_allowed(config, ofi::kName) &&
         !is_allowed(config, tcp::kName);
}

// The transport that NCCL_NET asks for, or without it FI_PROVIDER, or CATENARY_TRANSPORTS; empty if
// they ask for none.
std::string_view net_of(const Config& config) {
  if (config.net.empty()) {
    const bool is_libfabric = names_a_provider(config) || allows_libfabric_only(config);
    return is_libfabric ? ofi::kName : std::string_view();
  }
  std::string name = config.net;
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
  const auto net =
      std::ranges::find(kNets, name, &std::pair<std::string_view, std::string_view>::first);
  if (net == std::end(kNets)) {
    throw_error(ErrorCode::kInvalidUsage,
                "NCCL_NET=%s: there is no such network here; there are OFI (libfabric) and Socket "
                "(TCP)",
                config.net.c_str());
  }
  return net->second;
}

bool is_net(std::string_view name) { return name == ofi::kName || name == tcp::kName; }

struct BuiltIn {
  std::string_view name;
  std::unique_ptr<Transport> (*make)(const TransportContext& context);
  bool (*viable)(const Config& config);
};

// Best first.
constexpr BuiltIn kBuiltIns[] = {
    {loopback::kName, loopback::make_transport, [](const Config&) { return true; }},
    {shm::kName, shm::make_transport, [](const Config& config) { return config.shm_disable == 0; }},
    // Only where it is asked for, as docs/efa.md explains.
    {ofi::kName, ofi::make_transport,
     [](const Config& config) { return net_of(config) == ofi::kName; }},
    {tcp::kName, tcp::make_transport, [](const Config&) { return true; }},
};

std::string known_names() {
  std::string names;
  for (const BuiltIn& entry : kBuiltIns) {
    if (!names.empty()) names += ", ";
    names += entry.name;
  }
  return names;
}

void check_names(const std::vector<std::string_view>& names) {
  for (const std::string_view name : names) {
    if (std::ranges::find(kBuiltIns, name, &BuiltIn::name) != std::end(kBuiltIns)) continue;
    throw_error(ErrorCode::kInvalidUsage,
                "CATENARY_TRANSPORTS: no transport is called '%s'; there "
                "are %s",
                std::string(name).c_str(), known_names().c_str());
  }
}

}  // namespace

Transports built_in_transports(const TransportContext& context) {
  check_names(split_names(context.config->transports));
  const Config& config = *context.config;
  if (config.net.empty() && !config.fi_provider.empty() && ofi::absence() != nullptr) {
    log_info(
        Subsystem::kNet, -1,
        format("FI_PROVIDER=%s is not for us: %s", config.fi_provider.c_str(), ofi::absence()));
  }
  const std::string_view net = net_of(*context.config);
  Transports transports;
  for (const BuiltIn& entry : kBuiltIns) {
    if (!net.empty() && is_net(entry.name) && entry.name != net) continue;
    const bool may_be = is_allowed(*context.config, entry.name);
    if (may_be && entry.viable(*context.config)) transports.push_back(entry.make(context));
  }
  if (transports.empty()) {
    throw_error(ErrorCode::kInvalidUsage,
                "CATENARY_TRANSPORTS=%s and NCCL_NET=%s leave no transport at all; there are %s",
                context.config->transports.c_str(), context.config->net.c_str(),
                known_names().c_str());
  }
  return transports;
}

std::string describe_transports(const Config& config) {
  TransportContext context;
  context.config = &config;
  std::string text;
  for (const BuiltIn& entry : kBuiltIns) {
    std::string state = "switched off";
    if (entry.name == ofi::kName && ofi::absence() != nullptr) {
      state = ofi::absence();
    } else if (entry.name == ofi::kName && !entry.viable(config)) {
      state = "not asked for: NCCL_NET=OFI, or FI_PROVIDER";
    } else if (entry.viable(config)) {
      const std::unique_ptr<Transport> transport = entry.make(context);
      state = transport->address().empty() ? "not here" : "works here";
      const std::string about = transport->about();
      if (!about.empty()) state += ": " + about;
    }
    text += format("%-9s %s\n", std::string(entry.name).c_str(), state.c_str());
  }
  return text;
}

}  // namespace catenary
