#include "transports/loopback/transport.h"

#include <optional>

#include "transports/loopback/address.h"
#include "transports/loopback/attach.h"

namespace catenary::loopback {
namespace {

class LoopbackTransport final : public Transport {
 public:
  explicit LoopbackTransport(const TransportContext& context)
      : context_(context), address_(local_address()) {}

  std::string_view name() const override { return kName; }
  Bytes address() override { return address_; }
  bool reaches(ByteView peer_address) const override {
    return loopback::reaches(address_, peer_address);
  }

  bool shares_memory() const override { return true; }

  std::vector<bool> attach(std::span<const Bytes> addresses, const Wait&) override {
    const std::vector<int> group = reachable_ranks(*this, addresses);
    seat_.emplace(attach_arena(context_, static_cast<int>(group.size())), group, context_);
    std::vector<bool> proven(addresses.size());
    for (const int rank : group) proven[static_cast<std::size_t>(rank)] = true;
    return proven;
  }

  void note_crowding(bool is_crowded) override { seat_->note_crowding(is_crowded); }
  std::unique_ptr<SendLink> connect(const LinkSpec& spec) override {
    return seat_->connect(spec, context_.heap, [this] { return reach(); });
  }
  std::unique_ptr<RecvLink> listen(const LinkSpec& spec) override {
    return seat_->listen(spec, context_.heap, reach());
  }
  bool has_come(const LinkSpec&) override { return true; }
  Doorbell* doorbell() override { return seat_ ? seat_->doorbell() : nullptr; }

 private:
  // Our own, which is the peer's as well.
  PeerReach reach() const {
    const bool fetches = context_.least_fetched != SIZE_MAX;
    return {.heap = {.mapping = nullptr,
                     .base = context_.heap.base,
                     .bytes = context_.heap.bytes,
                     .is_writable = true},
            .process = fetches ? ProcessMemory::own() : ProcessMemory()};
  }

  const TransportContext context_;
  const Bytes address_;
  std::optional<ArenaSeat> seat_;  // from attach() on
};

}  // namespace

std::unique_ptr<Transport> make_transport(const TransportContext& context) {
  return std::make_unique<LoopbackTransport>(context);
}

}  // namespace catenary::loopback
