// The conformance suite over each of libfabric's providers that a machine without its hardware has.
#include "src/transport/faulty_port.h"
#include "src/transport/striped_port.h"
#include "tests/transport/conformance.h"
#include "transports/ofi/transport.h"

namespace catenary::test {
namespace {

std::function<std::unique_ptr<Transport>(const TransportContext&)> maker_for(
    const std::string& provider) {
  Config config;
  config.socket_ifname = "=lo";
  config.fi_provider = provider;
  return [config = std::make_shared<const Config>(config)](const TransportContext& context) {
    TransportContext ours = context;
    ours.config = config.get();
    return ofi::make_transport(ours);
  };
}

// Ranks with two, three, four and one rails, in turn; slots are long enough for all of them.
std::vector<Variant> striped_over(const std::string& provider, RunAs run_as) {
  const auto configs = std::make_shared<std::vector<Config>>();
  for (const int rails : {2, 3, 4, 1}) {
    Config& config = configs->emplace_back();
    config.socket_ifname = "=lo";
    config.fi_provider = provider;
    config.rails = rails;
  }
  Variant variant = standard_variants(run_as, nullptr).front();
  variant.slot_bytes = 2 * StripedPort::kLongPut;
  variant.make = [configs](const TransportContext& context) {
    TransportContext ours = context;
    ours.config = &(*configs)[static_cast<std::size_t>(context.rank) % configs->size()];
    return ofi::make_transport(ours);
  };
  return {variant};
}

// The same with a port that refuses, holds and turns around, each rank and run in its own way.
std::function<std::unique_ptr<Transport>(const TransportContext&)> faulty_maker_for(
    const std::string& provider, PortFaults faults) {
  Config config;
  config.socket_ifname = "=lo";
  config.fi_provider = provider;
  return
      [config = std::make_shared<const Config>(config), faults](const TransportContext& context) {
        TransportContext ours = context;
        ours.config = config.get();
        PortFaults own = faults;
        own.seed += static_cast<std::uint64_t>(context.rank) * 1001;
        return ofi::make_decorated_transport(ours, [own](std::unique_ptr<PutPort> port) {
          return make_faulty_port(std::move(port), own);
        });
      };
}

std::vector<Variant> misbehaving() {
  Variant variant = standard_variants(RunAs::kThreads, nullptr).front();
  variant.make = faulty_maker_for("tcp;ofi_rxm", {7, 100, 10, 400, 0});
  return {variant};
}

// What libfabric keeps for good is kept before anybody counts descriptors.
const std::string& warmed_up(const std::string& provider) {
  const auto make = maker_for(provider);
  TransportContext context;
  make(context);
  return provider;
}

// As it is, and starved behind delays.
std::vector<Variant> variants_over(const std::string& provider, RunAs run_as) {
  const std::vector<Variant> all = standard_variants(run_as, nullptr);
  std::vector<Variant> variants = {all.front(), all.back()};
  for (Variant& variant : variants) variant.make = maker_for(provider);
  return variants;
}
std::vector<Variant> plain_over(const std::string& provider, RunAs run_as) {
  return {variants_over(provider, run_as).front()};
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(TcpThreads, Conformance,
                         testing::ValuesIn(variants_over("tcp;ofi_rxm", RunAs::kThreads)),
                         variant_name);
INSTANTIATE_TEST_SUITE_P(TcpProcesses, Conformance,
                         testing::ValuesIn(variants_over("tcp;ofi_rxm", RunAs::kProcesses)),
                         variant_name);
INSTANTIATE_TEST_SUITE_P(NetThreads, Conformance,
                         testing::ValuesIn(variants_over("net", RunAs::kThreads)), variant_name);
INSTANTIATE_TEST_SUITE_P(NetProcesses, Conformance,
                         testing::ValuesIn(variants_over("net", RunAs::kProcesses)), variant_name);
INSTANTIATE_TEST_SUITE_P(Udp, Conformance,
                         testing::ValuesIn(plain_over("udp;ofi_rxd", RunAs::kThreads)),
                         variant_name);
// Milliseconds a message, whatever one does.
INSTANTIATE_TEST_SUITE_P(Sockets, Conformance,
                         testing::ValuesIn(plain_over("sockets", RunAs::kThreads)), variant_name);
// Several endpoints in one process make libfabric 1.17 crash, when one is closed before the others.
INSTANTIATE_TEST_SUITE_P(Shm, Conformance, testing::ValuesIn(plain_over("shm", RunAs::kProcesses)),
                         variant_name);

INSTANTIATE_TEST_SUITE_P(StripedTcp, Conformance,
                         testing::ValuesIn(striped_over("tcp;ofi_rxm", RunAs::kThreads)),
                         variant_name);
INSTANTIATE_TEST_SUITE_P(StripedNet, Conformance,
                         testing::ValuesIn(striped_over("net", RunAs::kProcesses)), variant_name);

// As EFA may: see faulty_port.h.
INSTANTIATE_TEST_SUITE_P(Misbehaving, Conformance, testing::ValuesIn(misbehaving()), variant_name);

class WarmUp final : public testing::Environment {
 public:
  void SetUp() override {
    for (const char* provider : {"tcp;ofi_rxm", "net", "udp;ofi_rxd", "sockets", "shm"}) {
      warmed_up(provider);
    }
  }
};
const auto* const kWarmUp = testing::AddGlobalTestEnvironment(new WarmUp);

}  // namespace catenary::test
