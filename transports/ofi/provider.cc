#include "transports/ofi/provider.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <string_view>
#include <vector>

#include "src/base/error.h"
#include "src/transport/socket_hub.h"
#include "transports/ofi/address.h"
#include "transports/ofi/card.h"

namespace catenary::ofi {
namespace {

constexpr std::uint32_t kApi = FI_VERSION(1, 17);
// Best first. Of TCP what does without ofi_rxm comes first: up to libfabric 2.4 at least, ofi_rxm
// takes a peer's write that breaks off for one of its own, and crashes. 1.17 calls that "net",
// later ones "tcp". (`net` says that writes are delivered when they are not; PutHub does not rely
// on it.)
constexpr const char* kPreferred[] = {"efa", "verbs;ofi_rxm", "tcp", "net", "tcp;ofi_rxm"};

Info make_hints() {
  Info hints = copy_of(nullptr);
  hints->caps = FI_MSG | FI_RMA | FI_SEND | FI_RECV | FI_WRITE | FI_REMOTE_WRITE;
  hints->mode = FI_CONTEXT | FI_CONTEXT2;
  hints->ep_attr->type = FI_EP_RDM;
  hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
  hints->domain_attr->threading = FI_THREAD_DOMAIN;
  hints->domain_attr->av_type = FI_AV_TABLE;
  hints->domain_attr->cq_data_size = 4;
  return hints;
}

// All that libfabric has for these hints; null if nothing. One thread at a time, as its first call
// sets it up.
Info query(const fi_info* hints, const char* source) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  fi_info* found = nullptr;
  const int result =
      library().getinfo(kApi, source, nullptr, source == nullptr ? 0 : FI_SOURCE, hints, &found);
  if (result == -FI_ENODATA) return nullptr;
  if (result != 0) throw_fabric_error("fi_getinfo", result);
  return Info(found);
}

std::vector<std::string> names_of(const fi_info* info) {
  std::vector<std::string> names;
  for (; info != nullptr; info = info->next) {
    const std::string name = info->fabric_attr->prov_name;
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  return names;
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text.empty() ? "none" : text;
}

// What FI_PROVIDER says, in libfabric's syntax: names that may be used, the first one first, or
// behind a ^ those that may not.
struct Wish {
  bool excludes = false;
  std::vector<std::string> names;
};

Wish parse_wish(std::string_view text) {
  Wish wish;
  wish.excludes = text.starts_with('^');
  if (wish.excludes) text.remove_prefix(1);
  while (!text.empty()) {
    const std::string_view name = text.substr(0, text.find(','));
    if (!name.empty()) wish.names.emplace_back(name);
    text.remove_prefix(std::min(name.size() + 1, text.size()));
  }
  return wish;
}

// "tcp" also stands for "tcp;ofi_rxm".
bool is_called(const std::string& name, const std::string& wanted) {
  return name == wanted || name.starts_with(wanted + ";");
}

// Whoever wants no "ofi_rxm" wants no "tcp;ofi_rxm" either.
bool contains(const std::string& name, const std::string& unwanted) {
  return is_called(name, unwanted) || name.ends_with(";" + unwanted);
}

// Empty if there is none.
std::string best_of(const std::vector<std::string>& there, const Wish& wish) {
  if (!wish.excludes) {
    for (const std::string& wanted : wish.names) {
      if (std::ranges::find(there, wanted) != there.end()) return wanted;
      for (const std::string& name : there) {
        if (is_called(name, wanted)) return name;
      }
    }
    if (!wish.names.empty()) return "";
  }
  for (const char* name : kPreferred) {
    const bool is_unwanted = wish.excludes && std::ranges::any_of(wish.names, [&](const auto& one) {
                               return contains(name, one);
                             });
    if (!is_unwanted && std::ranges::find(there, name) != there.end()) return name;
  }
  return "";
}

std::string pick_name(const std::vector<std::string>& there, const std::string& wanted) {
  const std::string name = best_of(there, parse_wish(wanted));
  if (!name.empty()) return name;
  if (wanted.empty()) {
    throw_error(ErrorCode::kSystem, "libfabric has no provider here that is any good; it has: %s",
                joined(there).c_str());
  }
  throw_error(ErrorCode::kInvalidUsage,
              "FI_PROVIDER=%s: libfabric has no such provider here that can do what is needed; "
              "%s (env -u FI_PROVIDER fi_info -l lists what there is)",
              wanted.c_str(),
              there.empty() ? "it shows no other" : ("it has: " + joined(there)).c_str());
}

bool is_over_ip(const fi_info& info) {
  return info.addr_format == FI_SOCKADDR || info.addr_format == FI_SOCKADDR_IN ||
         info.addr_format == FI_SOCKADDR_IN6;
}

// One unless more are asked for.
Provider on_interfaces(const std::string& name, const Config& config, const fi_info& hints) {
  const std::vector<SocketAddress> addresses = choose_socket_addresses(config);
  const auto count = static_cast<std::size_t>(std::max<std::int64_t>(config.rails, 1));
  Provider provider = {.rails = {}, .name = name, .reason = "on"};
  for (std::size_t rail = 0; rail < count; ++rail) {
    const SocketAddress& address = addresses[rail % addresses.size()];
    const std::string host = address.host_text();
    const Info info = query(&hints, host.c_str());
    if (!info) {
      throw_error(
          ErrorCode::kSystem,
          "libfabric's provider %s cannot use the address %s; NCCL_SOCKET_IFNAME says which "
          "interface to take, and must name the card's%s",
          name.c_str(), host.c_str(), name.starts_with("verbs") ? ", as ib0" : "");
    }
    provider.rails.push_back(copy_of(info.get()));
    provider.reason += (rail == 0 ? " " : ", ") + host;
    if (!name.starts_with("verbs")) provider.interfaces.push_back(address);
  }
  return provider;
}

Provider on_cards(const std::string& name, const Config& config, const fi_info& list,
                  const Neighbours& here) {
  // Several endpoints in one process make `shm` of libfabric 1.17 crash.
  const bool is_lonely = !machine_for(name).empty();
  const std::size_t rails = is_lonely ? 1 : static_cast<std::size_t>(config.rails);
  const Cards cards = choose_cards(list, {.here = here}, rails);
  Provider provider = {.rails = {}, .name = name, .reason = "by itself"};
  if (!cards.about.empty()) provider.reason = "on " + cards.about;
  if (is_efa_direct(*cards.rails.front())) provider.name = "efa-direct";
  for (const fi_info* info : cards.rails) provider.rails.push_back(copy_of(info));
  return provider;
}

}  // namespace

Provider choose_provider(const Config& config, const Neighbours& here) {
  const Info hints = make_hints();
  const Info all = query(hints.get(), nullptr);
  const std::vector<std::string> there = names_of(all.get());
  const std::string name = pick_name(there, config.fi_provider);
  hints->fabric_attr->prov_name = ::strdup(name.c_str());
  const Info ours = query(hints.get(), nullptr);
  if (!ours) throw_error(ErrorCode::kSystem, "libfabric's provider %s vanished", name.c_str());
  Provider provider =
      is_over_ip(*ours) ? on_interfaces(name, config, *hints) : on_cards(name, config, *ours, here);
  const std::uint32_t version = library().version();
  const bool is_by_software = name == "efa" && version < FI_VERSION(1, 18);
  provider.reason =
      format("libfabric %u.%u, provider %s %s%s, %s of: %s", FI_MAJOR(version), FI_MINOR(version),
             provider.name.c_str(), provider.reason.c_str(),
             is_by_software ? ", writing in software (a newer libfabric would not)" : "",
             config.fi_provider.empty() ? "the best" : "asked for by FI_PROVIDER out",
             joined(there).c_str());
  return provider;
}

}  // namespace catenary::ofi
