#include "transports/ofi/transport.h"

#include "src/base/error.h"
#include "src/base/log.h"
#include "src/transport/path_watch.h"
#include "src/transport/socket_link.h"
#include "transports/ofi/address.h"
#include "transports/ofi/attach.h"

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
    if (port_) hub_ = attach_hub(context_, std::move(port_), addresses, address_, decorate_);
    if (beside_.socket) {
      paths_.emplace(context_.rank, std::move(beside_), places_beside(addresses),
                     context_.config->peer_timeout_s,
                     [this](int peer) { return hub_->has_heard_of(peer); });
    }
    return reached;
  }

  std::unique_ptr<SendLink> connect(const LinkSpec& spec) override {
    if (paths_) paths_->watch(spec.peer);
    return hub_->connect(spec);
  }
  std::unique_ptr<RecvLink> listen(const LinkSpec& spec) override {
    if (paths_) paths_->watch(spec.peer);
    return hub_->listen(spec);
  }
  bool has_come(const LinkSpec& spec) override { return hub_->has_come(spec); }
  Doorbell* doorbell() override { return nullptr; }
  int wait_descriptor() override { return hub_ ? hub_->wait_descriptor() : -1; }
  bool poll() override { return hub_ && hub_->poll(); }
  void check_sent() override {
    if (hub_) hub_->check_sent();
    if (paths_) paths_->check();
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
    const Provider provider = choose_provider(*context_.config, context_.rank);
    port_ = std::make_unique<OfiPort>(provider, event_room(context_));
    Address address;
    address.provider = provider.name;
    address.format = provider.info->addr_format;
    address.machine = machine_for(provider.name);
    address.name = port_->name();
    is_over_sockets_ = provider.is_over_sockets;
    if (is_over_sockets_) watch_from(address);
    address_ = make_address(address);
    about_ = provider.reason;
    log_info(Subsystem::kNet, -1, format("Rank %d: %s", context_.rank, about_.c_str()));
  }

  void watch_from(Address& address) {
    try {
      beside_ = open_listener(*context_.config);
      address.beside = beside_.address;
    } catch (const Error& error) {
      log_info(Subsystem::kNet, -1,
               format("Rank %d cannot watch the ways to others: %s", context_.rank, error.what()));
    }
  }

  const TransportContext context_;
  const PortDecorator decorate_;
  bool is_opened_ = false;
  bool is_over_sockets_ = false;
  std::string about_;
  Bytes address_;                  // empty without a network
  std::unique_ptr<OfiPort> port_;  // until attach()
  SocketListener beside_;          // its socket until attach()
  std::unique_ptr<PutHub> hub_;    // from attach() on
  std::optional<PathWatch> paths_;
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
