#include "transports/built_in.h"

#include <gtest/gtest.h>

#include <string>

#include "src/base/error.h"
#include "transports/ofi/transport.h"

namespace catenary {
namespace {

std::string names_with(const Config& config) {
  TransportContext context;
  context.config = &config;
  std::string names;
  for (const auto& transport : built_in_transports(context)) {
    names += std::string(transport->name()) + " ";
  }
  return names;
}

TEST(BuiltIn, all_are_listed_best_first) { EXPECT_EQ(names_with(Config()), "loopback shm tcp "); }

TEST(BuiltIn, the_configuration_chooses_and_our_order_stays) {
  Config config;
  config.transports = "shm,loopback";
  EXPECT_EQ(names_with(config), "loopback shm ");
  config.transports = "shm";
  EXPECT_EQ(names_with(config), "shm ");
}

TEST(BuiltIn, shared_memory_can_be_disabled) {
  Config config;
  config.shm_disable = 1;
  EXPECT_EQ(names_with(config), "loopback tcp ");
}

TEST(BuiltIn, one_network_takes_the_place_of_the_other) {
  Config config;
  config.net = "OFI";
  if (ofi::absence() == nullptr) {
    EXPECT_EQ(names_with(config), "loopback shm ofi ");
  } else {
    EXPECT_THROW(names_with(config), Error);
  }
  config.net = "Socket";
  EXPECT_EQ(names_with(config), "loopback shm tcp ");
  config.net = "carrier_pigeon";
  EXPECT_THROW(names_with(config), Error);
}

// FI_PROVIDER would else be ignored, and messages go over TCP although somebody wanted a card.
TEST(BuiltIn, a_provider_by_name_asks_for_libfabric) {
  Config config;
  const bool has_libfabric = ofi::absence() == nullptr;
  config.fi_provider = "efa";
  EXPECT_EQ(names_with(config), has_libfabric ? "loopback shm ofi " : "loopback shm tcp ");
  config.net = "Socket";
  EXPECT_EQ(names_with(config), "loopback shm tcp ");
  config.net = "";
  config.transports = "shm,tcp";
  EXPECT_EQ(names_with(config), "shm tcp ");
  config.transports = "";
  config.fi_provider = "^efa";
  EXPECT_EQ(names_with(config), "loopback shm tcp ");
}

TEST(BuiltIn, an_unknown_name_is_an_error_that_names_the_known_ones) {
  Config config;
  config.transports = "loopback,carrier_pigeon";
  try {
    names_with(config);
    ADD_FAILURE() << "accepted a transport that does not exist";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidUsage);
    EXPECT_NE(std::string(error.what()).find("carrier_pigeon"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("loopback, shm, ofi, tcp"), std::string::npos);
  }
}

}  // namespace
}  // namespace catenary
