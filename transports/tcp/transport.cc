#include "transports/tcp/transport.h"

#include "src/base/error.h"
#include "src/base/log.h"
#include "src/transport/socket_link.h"
#include "transports/tcp/address.h"
#include "transports/tcp/attach.h"

namespace catenary::tcp {
namespace {

class TcpTransport final : public Transport {
 public:
  explicit TcpTransport(const TransportContext& context) : context_(context) {}

  std::string_view name() const override { return kName; }
  Bytes address() override {
    if (!is_opened_) open();
    return address_;
  }
  std::string about() const override { return about_; }
  bool reaches(ByteView peer_address) const override {
    return tcp::reaches(address_, peer_address);
  }
  std::size_t longest_message() const override { return kPacketMessageBytes; }
  bool shares_memory() const override { return false; }

  std::vector<bool> attach(std::span<const Bytes> addresses, const Wait&) override {
    std::vector<bool> reached;
    for (const Bytes& address : addresses) reached.push_back(reaches(address));
    hub_ = attach_hub(context_, std::move(listener_.socket), addresses);
    return reached;
  }

  std::unique_ptr<SendLink> connect(const LinkSpec& spec) override { return hub_->connect(spec); }
  std::unique_ptr<RecvLink> listen(const LinkSpec& spec) override { return hub_->listen(spec); }
  bool has_come(const LinkSpec& spec) override { return hub_->has_come(spec); }
  Doorbell* doorbell() override { return nullptr; }
  int wait_descriptor() override { return hub_ ? hub_->wait_descriptor() : -1; }
  bool poll() override { return hub_ && hub_->poll(); }
  void check_sent() override {
    if (hub_) hub_->check_sent();
  }

 private:
  void open() {
    is_opened_ = true;
    try {
      listener_ = open_listener(*context_.config);
      address_ = make_address({listener_.address, machine_number()});
      about_ = "at " + listener_.address.text();
      about_ += context_.config->net.empty() ? ", where there is no shared memory"
                                             : ", asked for by NCCL_NET";
    } catch (const Error& error) {
      if (!context_.config->net.empty()) throw;  // it was asked for
      // A rank without an address is reached by nobody.
      about_ = error.what();
      log_info(Subsystem::kNet, -1, format("Rank %d has no TCP: %s", context_.rank, error.what()));
    }
  }

  const TransportContext context_;
  bool is_opened_ = false;
  Bytes address_;  // empty without a network
  std::string about_;
  SocketListener listener_;         // its socket until attach()
  std::unique_ptr<SocketHub> hub_;  // from attach() on
};

}  // namespace

std::unique_ptr<Transport> make_transport(const TransportContext& context) {
  return std::make_unique<TcpTransport>(context);
}

}  // namespace catenary::tcp
