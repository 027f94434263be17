#include "transports/ofi/transport.h"

#include <deque>

#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/log.h"
#include "src/transport/path_watch.h"
#include "src/transport/socket_link.h"
#include "transports/ofi/address.h"
#include "transports/ofi/attach.h"
#include "transports/ofi/provider.h"

namespace catenary::ofi {
namespace {

class OfiTransport final : public Transport {
 public:
  OfiTransport(const TransportContext& context, PortDecorator decorate)
      : context_(context), decorate_(std::move(decorate)) {}

  std::string_view name() const override { return kName; }
  Bytes address() override {
    if (!is_opened_) open();
    return address_;
  }
  std::string about() const override { return about_; }
  void note_neighbours(const Neighbours& here) override { here_ = here; }
  bool reaches(ByteView peer_address) const override {
    return ofi::reaches(address_, peer_address);
  }
  std::size_t longest_message() const override {
    return is_over_sockets_ ? kPacketMessageBytes : SIZE_MAX;
  }
  bool shares_memory() const override { return false; }

  std::vector<bool> attach(std::span<const Bytes> addresses, const Wait&) override {
    std::vector<bool> reached;
    for (const Bytes& address : addresses) reached.push_back(reaches(address));
    note_other_providers(addresses);
    if (!rails_.empty()) {
      hub_ = attach_hub(context_, std::move(rails_), addresses, address_, decorate_);
    }
    for (Beside& beside : beside_) {
      paths_.emplace_back(context_.rank, key_beside(context_), std::move(beside.listener),
                          places_beside(addresses, beside.rail), context_.config->peer_timeout_s,
                          [this](int peer) { return hub_->has_heard_of(peer); });
    }
    return reached;
  }

  std::unique_ptr<SendLink> connect(const LinkSpec& spec) override {
    for (PathWatch& path : paths_) path.watch(spec.peer);
    return hub_->connect(spec);
  }
  std::unique_ptr<RecvLink> listen(const LinkSpec& spec) override {
    for (PathWatch& path : paths_) path.watch(spec.peer);
    return hub_->listen(spec);
  }
  bool has_come(const LinkSpec& spec) override { return hub_->has_come(spec); }
  Doorbell* doorbell() override { return nullptr; }
  int wait_descriptor() override { return hub_ ? hub_->wait_descriptor() : -1; }
  bool poll() override { return hub_ && hub_->poll(); }
  void check_sent() override {
    // Cards know what has arrived.
    if (hub_ && is_over_sockets_) {
      hub_->compare_tallies(now_ns(), context_.config->peer_timeout_s * 1'000'000'000);
    }
    if (hub_) hub_->check_sent();
    for (PathWatch& path : paths_) path.check();
  }
  bool try_drain() override { return !hub_ || hub_->try_drain(); }

 private:
  void open() {
    is_opened_ = true;
    const Config& config = *context_.config;
    try {
      open_endpoint();
    } catch (const Error& error) {
      if (!config.net.empty() || !config.fi_provider.empty()) throw;
      about_ = error.what();
      log_info(Subsystem::kNet, -1,
               format("Rank %d has no libfabric: %s", context_.rank, error.what()));
    }
  }

  void open_endpoint() {
    const Provider provider = choose_provider(*context_.config, here_);
    Address address;
    address.provider = provider.name;
    address.format = provider.rails.front()->addr_format;
    address.machine = machine_for(provider.name);
    std::vector<std::unique_ptr<OfiPort>> rails;
    for (const Info& info : provider.rails) {
      rails.push_back(std::make_unique<OfiPort>(*info, event_room(context_)));
      address.rails.push_back({rails.back()->name(), std::nullopt});
    }
    address.has_seals = rails.front()->has_room_for_seals();
    is_over_sockets_ = !provider.interfaces.empty();
    for (std::size_t rail = 0; rail < provider.interfaces.size(); ++rail) {
      address.rails[rail].beside = listen_beside(rail, provider.interfaces);
    }
    rails_ = std::move(rails);
    address_ = make_address(address);
    about_ = provider.reason;
  }

  // For whoever wonders why a rank is not reached that has libfabric, too.
  void note_other_providers(std::span<const Bytes> addresses) {
    for (std::size_t rank = 0; rank < addresses.size(); ++rank) {
      const std::optional<Address> theirs = parse_address(addresses[rank]);
      const std::optional<Address> ours = parse_address(address_);
      if (!theirs || !ours || theirs->provider == ours->provider) continue;
      about_ += format("; rank %zu has %s, so set the same FI_PROVIDER for all ranks", rank,
                       theirs->provider.c_str());
      return;
    }
  }

  // Once for each interface: rails that share one share their ways, too.
  std::optional<SocketAddress> listen_beside(std::size_t rail,
                                             const std::vector<SocketAddress>& interfaces) {
    for (const Beside& beside : beside_) {
      if (interfaces[beside.rail] == interfaces[rail]) return beside.listener.address;
    }
    try {
      beside_.push_back({rail, open_listener(interfaces[rail])});
      return beside_.back().listener.address;
    } catch (const Error& error) {
      log_info(Subsystem::kNet, -1,
               format("Rank %d cannot watch the ways to others: %s", context_.rank, error.what()));
      return std::nullopt;
    }
  }

  const TransportContext context_;
  const PortDecorator decorate_;
  bool is_opened_ = false;
  bool is_over_sockets_ = false;
  std::string about_;
  Neighbours here_;
  Bytes address_;                                // empty without a network
  std::vector<std::unique_ptr<OfiPort>> rails_;  // until attach()
  struct Beside {
    std::size_t rail;  // the first one on its interface
    SocketListener listener;
  };
  std::vector<Beside> beside_;   // the sockets until attach()
  std::unique_ptr<PutHub> hub_;  // from attach() on
  std::deque<PathWatch> paths_;
};

}  // namespace

const char* absence() noexcept { return nullptr; }

std::unique_ptr<Transport> make_transport(const TransportContext& context) {
  return make_decorated_transport(context, [](std::unique_ptr<PutPort> port) { return port; });
}

std::unique_ptr<Transport> make_decorated_transport(const TransportContext& context,
                                                    const PortDecorator& decorate) {
  return std::make_unique<OfiTransport>(context, decorate);
}

}  // namespace catenary::ofi
