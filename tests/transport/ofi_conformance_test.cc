// The conformance suite over each of libfabric's providers that a machine without its hardware has.
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

// What libfabric keeps for good is kept before anybody counts descriptors.
const std::string& warmed_up(const std::string& provider) {
  const auto make = maker_for(provider);
  TransportContext context;
  make(context);
  return provider;
}

// All variants over what is used without special hardware, two of each kind over the others, and
// the plain ones over `sockets`, which takes milliseconds for each message.
std::vector<Variant> variants_over(const std::string& provider, RunAs run_as) {
  std::vector<Variant> variants = standard_variants(run_as, nullptr);
  for (Variant& variant : variants) variant.make = maker_for(provider);
  if (provider == "tcp;ofi_rxm") return variants;
  if (provider == "sockets") return {variants.front()};
  return {variants.front(), variants.back()};
}

}  // namespace

#define CATENARY_CONFORMS(Name, provider)                                                 \
  INSTANTIATE_TEST_SUITE_P(Name##Threads, Conformance,                                    \
                           testing::ValuesIn(variants_over(provider, RunAs::kThreads)),   \
                           variant_name);                                                 \
  INSTANTIATE_TEST_SUITE_P(Name##Processes, Conformance,                                  \
                           testing::ValuesIn(variants_over(provider, RunAs::kProcesses)), \
                           variant_name)

CATENARY_CONFORMS(Tcp, "tcp;ofi_rxm");
CATENARY_CONFORMS(Udp, "udp;ofi_rxd");
CATENARY_CONFORMS(Sockets, "sockets");
CATENARY_CONFORMS(Shm, "shm");

class WarmUp final : public testing::Environment {
 public:
  void SetUp() override {
    for (const char* provider : {"tcp;ofi_rxm", "udp;ofi_rxd", "sockets", "shm"}) {
      warmed_up(provider);
    }
  }
};
const auto* const kWarmUp = testing::AddGlobalTestEnvironment(new WarmUp);

}  // namespace catenary::test
