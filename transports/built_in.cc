#include "transports/built_in.h"

#include <algorithm>
#include <string>

#include "src/base/error.h"
#include "transports/loopback/transport.h"
#include "transports/shm/transport.h"
#include "transports/tcp/transport.h"

namespace catenary {
namespace {

struct BuiltIn {
  std::string_view name;
  std::unique_ptr<Transport> (*make)(const TransportContext& context);
  bool (*viable)(const Config& config);
};

// Best first.
constexpr BuiltIn kBuiltIns[] = {
    {loopback::kName, loopback::make_transport, [](const Config&) { return true; }},
    {shm::kName, shm::make_transport, [](const Config& config) { return config.shm_disable == 0; }},
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

std::vector<std::string_view> split_names(std::string_view list) {
  std::vector<std::string_view> names;
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    if (comma != 0) names.push_back(list.substr(0, comma));
    list.remove_prefix(std::min(comma + 1, list.size()));
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
  const std::vector<std::string_view> allowed = split_names(context.config->transports);
  check_names(allowed);
  Transports transports;
  for (const BuiltIn& entry : kBuiltIns) {
    const bool is_allowed =
        allowed.empty() || std::ranges::find(allowed, entry.name) != allowed.end();
    if (is_allowed && entry.viable(*context.config)) transports.push_back(entry.make(context));
  }
  return transports;
}

}  // namespace catenary
